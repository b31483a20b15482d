// SPDX-License-Identifier: Apache-2.0
// The slot that the report names as busy: that of the handler call in progress, which the host can read while the
// handler does not return.
#include "unittests/loop/loop_host.h"
#include "unittests/support/lap_ring.h"

#include <optional>

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kSlots = 8, kSlotSize = 64, kFunction = 3;

using test_loop = dispatch_loop<single_thread_group, ring_transport<single_thread_group, thread_scope_system>,
                                table_handler_set, no_helpers<single_thread_group>, false>;

/// A loop that is called step by step, and what its handler has seen.
class DeviceLoopBusy : public ::testing::Test {
protected:
  DeviceLoopBusy() {
    host_.params.ring = ring_.view;
    host_.params.handlers = &address_;
    memory_.lay_out(kSlotSize, false);
    report_ = &host_.reports[0];
    seen_.clear();
    loop_.emplace(host_.params, 0, memory_.loop,
                  ring_transport<single_thread_group, thread_scope_system>(ring_.view, 0), handlers_, helpers_);
  }
  void send(std::uint32_t slot) {
    write_request(ring_.view.rx_slot(slot), {CUDAQ_RPC_MAGIC_REQUEST, kFunction, 8, slot, 0});
    ring_.view.signal(slot);
  }
  void serve(std::uint32_t slot) {
    send(slot);
    while (ring_.view.answer(slot) == 0)
      loop_->turn();
    ring_.view.collect(slot);
  }
  static int note_busy(const void *, void *, std::uint32_t, std::uint32_t, std::uint32_t *result_len) {
    seen_.push_back(load_relaxed(report_->busy));
    *result_len = 0;
    return 0;
  }

  static inline std::vector<std::uint64_t> seen_; ///< the report's word in each call
  static inline const loop_report *report_ = nullptr;
  lap_ring ring_{kSlots, kSlotSize, false};
  loop_host host_{host_ring({kSlots, kSlotSize, false}), 1, kFunction, 1};
  std::uint64_t address_ = reinterpret_cast<std::uint64_t>(&note_busy);
  group_memory memory_;
  const table_handler_set handlers_{host_.params.index, &address_};
  no_helpers<single_thread_group> helpers_;
  std::optional<test_loop> loop_;
};

TEST_F(DeviceLoopBusy, NamesTheSlotOfEachCallInRingOrder) {
  std::vector<std::uint64_t> expected;
  for (std::uint32_t n = 0; n < 3 * kSlots; ++n) {
    serve(n % kSlots);
    expected.push_back(n % kSlots + 1);
  }
  EXPECT_EQ(seen_, expected);
}

TEST_F(DeviceLoopBusy, NamesTheNextSlotAfterAnAnswerSoThatItsAnswerNeedNotWaitForThePost) {
  serve(0); // the first request of a function is judged in full, as one of several
  serve(1);
  EXPECT_EQ(report_->busy, 3u);
  EXPECT_EQ(report_->responded, 2u);
}

TEST_F(DeviceLoopBusy, NamesTheSlotAfterTheCursorHasMovedElsewhere) {
  serve(0);
  send(5); // the producer leaves slots out
  std::thread loop([this] { loop_->run(1); });
  while (load_acquire(ring_.view.tx_flags[5]) == 0)
    std::this_thread::yield();
  while (load_acquire(report_->busy) != 0) // no request comes: no handler runs
    std::this_thread::yield();
  send(6);
  while (load_acquire(ring_.view.tx_flags[6]) == 0)
    std::this_thread::yield();
  store_release(host_.library_word, std::uint32_t{1});
  loop.join();
  EXPECT_EQ(seen_, (std::vector<std::uint64_t>{1, 6, 7}));
  EXPECT_EQ(report_->busy, 0u);
}

} // namespace
} // namespace cudaq::realtime::test
