// SPDX-License-Identifier: Apache-2.0
// The state when stop has returned. Races that a plain test would hit once in a million runs are made certain.
#include "unittests/host_dispatcher/paused_page.h"

namespace cudaq::realtime::test {
namespace {

struct kept_call {
  cudaq_host_call_t call{};
  std::atomic<int> kept{0};
  static std::int32_t serve(cudaq_host_call_t *call, void *user) {
    auto &self = *static_cast<kept_call *>(user);
    self.call = *call;
    ++self.kept;
    return CUDAQ_HOST_CALL_DEFERRED;
  }
};

class Stop : public ::testing::Test {
protected:
  static constexpr ring_shape kShape{4, 64, false};
  Stop() {
    const cudaq_dispatcher_config_t config = host_config(kShape);
    CUDAQ_EXPECT_OK(cudaq_dispatcher_create(manager.get, &config, &dispatcher));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_ringbuffer(dispatcher, &memory.ring));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_control(dispatcher, &shutdown, &processed));
    const cudaq_dispatcher_options_t options = default_options();
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_options(dispatcher, &options));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_host_handler_v2(dispatcher, 1, kept_call::serve, &kept, nullptr));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_start(dispatcher));
  }
  ~Stop() override {
    memory.release();
    CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(dispatcher));
  }
  void send(std::uint32_t slot, std::uint32_t id) {
    CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_write_rpc_request(&memory.ring, slot, 1, nullptr, 0, id, 0));
    cudaq_host_ringbuffer_signal_slot(&memory.ring, slot);
  }

  /// The thread that completes a deferred job is held at its store to `at`. It goes on when stop is back, or after
  /// `hold`.
  void expect_it_waits(volatile void *at, std::chrono::nanoseconds timeout, std::chrono::milliseconds hold) {
    send(0, 7);
    ASSERT_TRUE(eventually([&] { return kept.kept.load() == 1; }));
    memory.pause(at);
    std::thread completer([&] { CUDAQ_EXPECT_OK(cudaq_host_complete_deferred(dispatcher, &kept.call.job, 0, 0)); });
    ASSERT_TRUE(eventually([&] { return memory.has_waiting_thread(); }));
    std::atomic<bool> back{false}, too_early{false};
    std::thread stopper([&] {
      // Stop may succeed or time out. It must not succeed before the answer is out.
      if (cudaq_dispatcher_stop_timeout(dispatcher, static_cast<std::uint64_t>(timeout.count())) == CUDAQ_OK)
        too_early = cudaq_host_ringbuffer_poll_tx_flag(&memory.ring, 0, nullptr) != CUDAQ_TX_READY;
      back = true;
    });
    eventually([&] { return back.load(); }, hold);
    memory.release();
    completer.join();
    stopper.join();
    EXPECT_FALSE(too_early.load()) << "stop returned while a thread was still writing to the ring";
  }

  page_ring memory{kShape.num_slots, kShape.slot_size};
  manager_handle manager;
  cudaq_dispatcher_t *dispatcher = nullptr;
  volatile int shutdown = 0;
  std::uint64_t processed = 0;
  kept_call kept;
};

// The completing thread has counted its answer and is about to raise the flag.
TEST_F(Stop, DoesNotComeBackBeforeADeferredAnswerIsPublished) {
  expect_it_waits(memory.ring.tx_flags_host, std::chrono::seconds(2), std::chrono::milliseconds(200));
}

// Stop gives up the job after the completing thread has claimed it.
TEST_F(Stop, DoesNotComeBackFromItsDeadlineBeforeAClaimedAnswerIsPublished) {
  expect_it_waits(memory.ring.tx_data_host, std::chrono::milliseconds(100), std::chrono::milliseconds(300));
}

} // namespace
} // namespace cudaq::realtime::test
