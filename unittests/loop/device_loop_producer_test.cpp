// SPDX-License-Identifier: Apache-2.0
// The device loop on CPU threads, on a ring with laps: what a kernel does if the requests lie in device memory. Two
// threads produce through one handle.
#include "cudaq/realtime/detail/loop/posted_ring_transport.h"
#include "lib/ring/producer_core.h"
#include "unittests/loop/loop_host.h"
#include "unittests/support/lap_ring.h"

namespace cudaq::realtime::test {
namespace {

struct flavour {
  const char *name;
  std::uint32_t num_slots, slot_size, groups;
  bool restarts = false; ///< the loop ends and starts again all the time
};

class DeviceLoopWithLaps : public ::testing::TestWithParam<flavour> {
protected:
  static constexpr std::uint32_t kThreads = 2, kUnknownId = 77;
  /// A message through one slot takes a turn of four threads, milliseconds each if other programs have the cores.
  static constexpr std::chrono::seconds kLongEnough{10};

  /// Every 16th request is unknown, and dropped, without an answer.
  static bool is_dropped(std::uint32_t n) { return n % 16 == 5; }
};

/// One thread's function. Its requests and answers are checked by their content. Stops early at `end`. `sent` counts
/// the requests of all threads.
void produce(producer_core &producer, std::uint32_t id, std::uint32_t messages,
             std::chrono::steady_clock::time_point end, std::uint32_t room, std::atomic<std::uint32_t> &sent,
             std::atomic<std::uint32_t> &dropped, const std::function<bool(std::uint32_t)> &is_dropped,
             std::uint32_t unknown_id) {
  std::uint32_t sequence = 0;
  for (std::uint32_t n = 0; n < messages && std::chrono::steady_clock::now() < end; ++n) {
    std::uint32_t slot = 0;
    if (!eventually([&] { return producer.claim(slot); }))
      return ADD_FAILURE() << "no slot became free after " << n << " requests";
    ++sent;
    const bool drop = is_dropped(n);
    dropped += drop;
    std::uint8_t *const frame = producer.frame(slot);
    const std::uint32_t bytes = checked_result_size(n, room);
    fill_frame(frame + CUDAQ_RPC_HEADER_SIZE, bytes, drop ? 0 : sequence++, kRequestSalt);
    write_request(frame, {CUDAQ_RPC_MAGIC_REQUEST, drop ? unknown_id : id, bytes, n, 0});
    producer.commit(slot, 1);
  }
}

// Known failure 2.
TEST_P(DeviceLoopWithLaps, AHandleSharedByTwoThreadsLosesNothing) {
  const flavour &f = GetParam();
  const std::uint32_t messages = load_size(20000);
  lap_ring laps(f.num_slots, f.slot_size, true);
  const host_ring shape_only({f.num_slots, f.slot_size, false});
  std::vector<std::unique_ptr<checked_function>> functions;
  for (std::uint32_t id = 1; id <= kThreads; ++id) {
    functions.push_back(std::make_unique<checked_function>(id, messages));
    checked_function::v1_by_id[id] = functions.back().get();
  }
  loop_host host(shape_only, f.groups, 1, kThreads);
  host.params.ring = laps.view;
  host.params.rules.answer_unknown = false;
  const posted_ring_transport<yielding_thread_group> transport(laps.view, 0);
  f.groups > 1 ? host.start_with<true>(transport) : host.start_with<false>(transport);

  producer_core producer(laps.view, 0);
  std::atomic<std::uint32_t> sent{0}, dropped{0};
  std::atomic<bool> finished{false};
  std::uint32_t collected = 0, corrupt = 0;
  std::thread consumer([&] {
    std::uint32_t sequence = 0;
    while (!finished.load()) {
      const std::uint32_t before = collected;
      for (std::uint32_t i = 0; i < f.num_slots; ++i) {
        if (laps.view.answer(i) == 0)
          continue;
        const auto header = read_header<response>(laps.view.tx_slot(i));
        const std::uint8_t *const result = laps.view.tx_slot(i) + CUDAQ_RPC_HEADER_SIZE;
        bool intact = false;
        for (std::uint32_t id = 1; id <= kThreads; ++id)
          intact = intact || intact_frame(result, header.result_len, result_salt(id), sequence);
        corrupt += !intact;
        ++collected;
        laps.view.collect(i);
      }
      if (collected == before)
        std::this_thread::yield();
    }
  });
  const auto end = std::chrono::steady_clock::now() + kLongEnough;
  std::vector<std::thread> producers;
  for (std::uint32_t t = 0; t < kThreads; ++t)
    producers.emplace_back([&, t] {
      produce(producer, t + 1, messages, end, f.slot_size - CUDAQ_RPC_HEADER_SIZE, sent, dropped, is_dropped,
              kUnknownId);
    });
  std::atomic<bool> produced{false};
  std::thread restarter([&] {
    while (f.restarts && !produced.load()) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      store_release(host.library_word, std::uint32_t{1});
      host.join();
      store_release(host.library_word, std::uint32_t{0});
      const auto next = static_cast<std::uint32_t>(load_acquire(host.reports[0].cursor));
      host.start_with<false>(posted_ring_transport<yielding_thread_group>(laps.view, next));
    }
  });
  for (std::thread &p : producers)
    p.join();
  produced = true;
  restarter.join();
  const auto idle = [&] {
    for (std::uint32_t i = 0; i < f.num_slots; ++i)
      if (laps.view.ready(i) != 0 || laps.view.answer(i) != 0)
        return false;
    return true;
  };
  EXPECT_TRUE(eventually(idle));
  finished = true;
  consumer.join();
  store_release(host.library_word, std::uint32_t{1});
  host.join();
  EXPECT_EQ(collected + dropped, sent);
  EXPECT_GT(dropped, 0u);
  EXPECT_EQ(corrupt, 0u);
  std::uint64_t given_back = 0, counted_drops = 0;
  for (std::uint32_t i = 0; i < f.num_slots; ++i) {
    given_back += laps.view.tx_flags[i + f.num_slots];
    EXPECT_EQ(laps.view.tx_flags[i + f.num_slots], laps.view.rx_flags[i + f.num_slots]) << "lap and count differ";
  }
  for (const loop_report &r : host.reports)
    counted_drops += r.dropped_unknown_function;
  EXPECT_EQ(given_back, sent) << "one lap a request";
  if (!f.restarts) { // each start counts anew
    EXPECT_EQ(counted_drops, dropped);
  }
  for (const auto &function : functions) {
    EXPECT_EQ(function->corrupt + function->doubled, 0u);
    EXPECT_EQ(f.groups == 1 ? function->out_of_order.load() : 0, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Flavours, DeviceLoopWithLaps,
                         ::testing::Values(flavour{"OneSlot", 1, 64, 1}, flavour{"TwoSlots", 2, 128, 1},
                                           flavour{"ThreeSlots", 3, 72, 1}, flavour{"ManySlots", 64, 1024, 1},
                                           flavour{"OneSlotRestarts", 1, 64, 1, true},
                                           flavour{"TwoSlotsRestarts", 2, 128, 1, true},
                                           flavour{"ManySlotsRestarts", 64, 128, 1, true},
                                           flavour{"AnyTwoGroups", 64, 64, 2}),
                         [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::test
