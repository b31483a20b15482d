// SPDX-License-Identifier: Apache-2.0
// Stop and restart under load.
#include "cudaq/realtime/detail/base/flag_word.h"
#include "unittests/host_dispatcher/traffic.h"

namespace cudaq::realtime::test {
namespace {

struct flavour {
  const char *name;
  ring_shape shape;
  std::uint32_t pool = 0;
  bool shared = false;
  bool skip_markers = false;
  bool by_flag = false; ///< the caller ends the loop by its shutdown flag
};

/// A thread that calls all functions that may be called at any time, until it is destroyed.
class observer {
public:
  explicit observer(const host_dispatcher_handle &dispatcher)
      : thread_([this, &dispatcher] {
          std::uint64_t responded = 0, processed = 0, heartbeat = 0;
          while (!end_.load()) {
            const cudaq_dispatcher_stats_t stats = dispatcher.stats();
            EXPECT_LE(stats.in_flight, 64u) << "more requests than slots";
            EXPECT_LE(stats.busy_slots, 3u);
            EXPECT_LT(stats.cursor, 8u);
            EXPECT_GE(stats.responded, responded) << "a counter decreased";
            responded = stats.responded;
            EXPECT_GE(stats.heartbeat, heartbeat);
            heartbeat = stats.heartbeat;
            std::uint64_t now = 0;
            CUDAQ_EXPECT_OK(cudaq_dispatcher_get_processed(dispatcher.get, &now));
            EXPECT_GE(now, processed);
            processed = now;
            EXPECT_NE(dispatcher.dump().find("state: "), std::string::npos);
            EXPECT_NE(dispatcher.state(), CUDAQ_DISPATCHER_FAILED);
            std::this_thread::sleep_for(std::chrono::microseconds(100));
          }
        }) {}
  ~observer() {
    end_.store(true);
    thread_.join();
  }

private:
  std::atomic<bool> end_{false};
  std::thread thread_;
};

class StopRestart : public ::testing::TestWithParam<flavour> {};

// Known failure 13.
TEST_P(StopRestart, UnderLoadAndObservationLosesNothing) {
  const flavour &f = GetParam();
  constexpr int kRounds = kSanitized ? 60 : 500;
  constexpr std::uint32_t kMax = 4000000;
  host_ring ring(f.shape);
  manager_handle manager;
  cudaq_dispatcher_config_t config = host_config(f.shape);
  config.shared_ring_mode = f.shared;
  config.skip_tx_markers = f.skip_markers;
  host_dispatcher_handle dispatcher(manager.get, ring, {}, config);
  cudaq_dispatcher_options_t options = default_options();
  options.handler_pool_size = f.pool;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(dispatcher.get, &options));
  const observer watching(dispatcher);
  std::mt19937 random(11);
  std::uint32_t first_slot = 0;
  std::uint64_t total = 0;
  // Several traffic runs, because the number of messages that all rounds need is not known before.
  for (int round = 0; round < kRounds && !HasFailure();) {
    checked_function one(1, kMax), two(2, kMax);
    serve_checked(dispatcher, one);
    serve_checked(dispatcher, two);
    CUDAQ_ASSERT_OK(cudaq_dispatcher_start(dispatcher.get));
    traffic_plan plan;
    plan.functions = {&one, &two};
    plan.messages = load_size(20000);
    plan.first_slot = first_slot;
    plan.seed = static_cast<std::uint32_t>(round + 1);
    traffic load(ring, plan);
    load.run_in_background();
    for (; load.collected() < plan.messages && round < kRounds && !HasFailure(); ++round) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
      if (f.by_flag && random() % 2) {
        detail::store_release(dispatcher.shutdown, 1);
        EXPECT_TRUE(eventually([&] { return dispatcher.state() == CUDAQ_DISPATCHER_STOPPED; }));
      }
      CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(dispatcher.get));
      EXPECT_EQ(dispatcher.stats().in_flight, 0u);
      CUDAQ_EXPECT_OK(cudaq_dispatcher_set_control(dispatcher.get, &dispatcher.shutdown, &dispatcher.processed));
      CUDAQ_EXPECT_OK(cudaq_dispatcher_start(dispatcher.get));
    }
    load.wait();
    load.expect_clean();
    total += plan.messages;
    first_slot = load.next_slot();
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(dispatcher.get));
    EXPECT_EQ(dispatcher.stats().responded, total);
    EXPECT_EQ(dispatcher.processed, total);
    EXPECT_EQ(dispatcher.stats().cursor_jumps, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Flavours, StopRestart,
                         ::testing::Values(flavour{"Inline", {8, 128, false}},
                                           flavour{"InlineByFlag", {8, 128, true}, 0, false, false, true},
                                           flavour{"Pool", {8, 128, false}, 2},
                                           flavour{"PoolNoMarkers", {8, 128, true}, 2, false, true},
                                           flavour{"Shared", {8, 128, false}, 0, true},
                                           flavour{"SharedPool", {8, 128, true}, 1, true, false, true}),
                         [](const auto &tested) { return std::string(tested.param.name); });

struct slow {
  std::atomic<std::uint32_t> served{0};
  std::atomic<std::uint32_t> begun{0};
  std::chrono::milliseconds takes{20};
  volatile int *until = nullptr; ///< not null: a call takes until this word is set
  static std::int32_t serve(cudaq_host_call_t *, void *user) {
    auto &self = *static_cast<slow *>(user);
    ++self.begun;
    if (self.until != nullptr)
      eventually([&] { return detail::load_acquire(*self.until) != 0; });
    std::this_thread::sleep_for(self.takes);
    ++self.served;
    return 0;
  }
};

// Stop ends the loop after the current request and does not serve the other requests in the ring.
TEST(StopUnderLoad, ServesOnlyTheRequestInHandOfAFullRing) {
  host_ring ring({64, 64, false});
  manager_handle manager;
  host_dispatcher_handle dispatcher(manager.get, ring, {}, host_config(ring.shape()));
  slow handler;
  handler.until = &dispatcher.shutdown; // the first request is in hand until stop is called, however late that is
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_host_handler_v2(dispatcher.get, 1, slow::serve, &handler, nullptr));
  ring_client client(ring);
  for (std::uint32_t id = 0; id < 64; ++id)
    client.send(1, {}, id);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(dispatcher.get));
  ASSERT_TRUE(eventually([&] { return handler.begun.load() == 1; }));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop_timeout(dispatcher.get, 10000000000));
  EXPECT_LE(handler.served.load(), 2u);
  handler.until = nullptr;
  handler.takes = std::chrono::milliseconds(0);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_start(dispatcher.get));
  for (std::uint32_t id = 0; id < 64; ++id)
    EXPECT_EQ(client.collect(id).header.request_id, id);
}

// The caller's shutdown flag ends the loop within a bounded number of polls, also under traffic.
TEST(StopUnderLoad, SeesTheCallersFlagWhileTrafficOfSlowHandlersGoesOn) {
  host_ring ring({2, 64, false});
  manager_handle manager;
  host_dispatcher_handle dispatcher(manager.get, ring, {}, host_config(ring.shape()));
  slow handler;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_host_handler_v2(dispatcher.get, 1, slow::serve, &handler, nullptr));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(dispatcher.get));
  std::atomic<bool> end{false};
  std::thread control([&] {
    ring_client client(ring);
    std::uint32_t sent = 0, taken = 0;
    answer got;
    while (!end.load()) {
      if (cudaq_host_ringbuffer_slot_available(&ring.ring, client.next_slot()) == 1)
        client.send(1, {}, sent++);
      if (client.try_collect(taken % 2, got))
        ++taken;
      std::this_thread::yield();
    }
  });
  ASSERT_TRUE(eventually([&] { return handler.served.load() >= 2; }));
  detail::store_release(dispatcher.shutdown, 1);
  const std::uint32_t before = handler.served.load(); // read after the store: what is served until then is no fault
  EXPECT_TRUE(eventually([&] { return dispatcher.state() == CUDAQ_DISPATCHER_STOPPED; }));
  EXPECT_LE(handler.served.load() - before, 3u);
  end.store(true);
  control.join();
}

} // namespace
} // namespace cudaq::realtime::test
