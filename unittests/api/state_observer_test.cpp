// SPDX-License-Identifier: Apache-2.0
// What a thread sees that reads the state and the counters all the time: legal transitions only, and no counter that
// goes back.
#include "unittests/support/state_watch.h"

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kFn = 77;
struct flavour {
  const char *name;
  std::uint32_t pool;
  bool shared;
  std::uint32_t wait_policy;
};

class StateObserver : public ::testing::TestWithParam<flavour> {
protected:
  static cudaq_dispatcher_config_t config() {
    cudaq_dispatcher_config_t c = host_config({});
    c.shared_ring_mode = GetParam().shared;
    return c;
  }
  void SetUp() override {
    b.options.handler_pool_size = GetParam().pool;
    b.options.wait_policy = GetParam().wait_policy;
    b.on(kFn, [this](cudaq_host_call_t &) { return closed.pass(), 0; });
  }
  /// Starts, and waits until a handler is stuck.
  void start_and_get_stuck() {
    b.start();
    ASSERT_TRUE(watch.sees(CUDAQ_DISPATCHER_RUNNING));
    slot = b.client.send(kFn, {}, 1);
    ASSERT_TRUE(eventually([&] { return closed.occupied(); }));
  }
  std::uint64_t processed() {
    std::uint64_t n = 0;
    CUDAQ_EXPECT_OK(cudaq_dispatcher_get_processed(b.get(), &n));
    return n;
  }

  gate closed;
  bench b{{}, {}, config()};
  state_watch watch{*b.dispatcher};
  std::uint32_t slot = 0;
};

// Known failure 48.
TEST_P(StateObserver, SeesLegalStepsWhileRunsStartAndStop) {
  closed.open();
  watch.restarts = true;
  for (std::uint32_t round = 0; round < 20; ++round) {
    b.start();
    ASSERT_TRUE(watch.sees(CUDAQ_DISPATCHER_RUNNING));
    EXPECT_EQ(b.client.call(kFn, {}, round).header.status, 0);
    if (round % 2 != 0)
      store_release(b.dispatcher->shutdown, 1); // races with stop
    CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(b.get()));
    ASSERT_TRUE(watch.sees(CUDAQ_DISPATCHER_STOPPED));
  }
  EXPECT_EQ(processed(), 20u);
}

TEST_P(StateObserver, SeesStoppingFromAStopThatTimesOutUntilOneSucceeds) {
  start_and_get_stuck();
  EXPECT_EQ(cudaq_dispatcher_stop_timeout(b.get(), ms(50)), CUDAQ_ERR_TIMEOUT);
  EXPECT_EQ(b.dispatcher->state(), CUDAQ_DISPATCHER_STOPPING);
  EXPECT_EQ(b.dispatcher->stats().state, static_cast<std::uint32_t>(CUDAQ_DISPATCHER_STOPPING));
  EXPECT_EQ(b.dispatcher->stats().in_flight, 1u);
  EXPECT_EQ(cudaq_dispatcher_start(b.get()), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"stopping", "stop it first"}));
  EXPECT_EQ(cudaq_dispatcher_set_options(b.get(), &b.options), CUDAQ_ERR_STATE);
  EXPECT_EQ(cudaq_dispatcher_stop_timeout(b.get(), ms(20)), CUDAQ_ERR_TIMEOUT);
  EXPECT_EQ(cudaq_dispatcher_stop_timeout(b.get(), 0), CUDAQ_ERR_TIMEOUT);
  ASSERT_TRUE(watch.sees(CUDAQ_DISPATCHER_STOPPING));
  closed.open();
  EXPECT_EQ(b.client.collect(slot).header.status, 0);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.get()));
  ASSERT_TRUE(watch.sees(CUDAQ_DISPATCHER_STOPPED));
  const std::vector<transition> expected = {{CUDAQ_DISPATCHER_WIRED, CUDAQ_DISPATCHER_RUNNING},
                                            {CUDAQ_DISPATCHER_RUNNING, CUDAQ_DISPATCHER_STOPPING},
                                            {CUDAQ_DISPATCHER_STOPPING, CUDAQ_DISPATCHER_STOPPED}};
  EXPECT_EQ(watch.seen(), expected);
}

TEST_P(StateObserver, SeesNoStoppedAfterTheCallersFlagBeforeTheHandlerIsBack) {
  start_and_get_stuck();
  store_release(b.dispatcher->shutdown, 1);
  const bool has_threads = GetParam().pool != 0; // without a pool the loop itself is in the handler: still running
  if (has_threads) {
    EXPECT_TRUE(watch.sees(CUDAQ_DISPATCHER_STOPPING));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_NE(b.dispatcher->state(), CUDAQ_DISPATCHER_STOPPED);
  closed.open();
  EXPECT_TRUE(watch.sees(CUDAQ_DISPATCHER_STOPPED)) << "no call of stop is needed";
  EXPECT_EQ(b.client.collect(slot).header.status, 0);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.get()));
  EXPECT_EQ(b.dispatcher->state(), CUDAQ_DISPATCHER_STOPPED);
}

TEST_P(StateObserver, SeesARestartAfterTheCallersFlag) {
  closed.open();
  watch.restarts = true;
  for (std::uint32_t round = 0; round < 10; ++round) {
    b.start(); // joins the run before
    ASSERT_TRUE(watch.sees(CUDAQ_DISPATCHER_RUNNING));
    EXPECT_EQ(b.client.call(kFn, {}, round).header.status, 0);
    store_release(b.dispatcher->shutdown, 1);
    ASSERT_TRUE(watch.sees(CUDAQ_DISPATCHER_STOPPED));
  }
}

TEST_P(StateObserver, SeesNothingOfAStartThatFails) {
  cudaq_dispatcher_options_t bad = b.options;
  bad.dispatcher_core = 1 << 20;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(b.get(), &bad));
  for (int n = 0; n < 5; ++n)
    EXPECT_NE(cudaq_dispatcher_start(b.get()), CUDAQ_OK);
  EXPECT_TRUE(watch.seen().empty());
  closed.open();
  b.start();
  ASSERT_TRUE(watch.sees(CUDAQ_DISPATCHER_RUNNING));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.get()));
  ASSERT_TRUE(watch.sees(CUDAQ_DISPATCHER_STOPPED));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(b.get(), &bad));
  EXPECT_NE(cudaq_dispatcher_start(b.get()), CUDAQ_OK);
  EXPECT_EQ(b.dispatcher->state(), CUDAQ_DISPATCHER_STOPPED);
}

TEST_P(StateObserver, SeesStoppingAfterADestroyThatIsRefused) {
  b.options.grace_period_ns = ms(30);
  start_and_get_stuck();
  EXPECT_EQ(cudaq_dispatcher_destroy(b.get()), CUDAQ_ERR_TIMEOUT);
  EXPECT_TRUE(watch.sees(CUDAQ_DISPATCHER_STOPPING));
  closed.open();
  EXPECT_TRUE(eventually([&] { return cudaq_dispatcher_stop(b.get()) == CUDAQ_OK; }));
  EXPECT_TRUE(watch.sees(CUDAQ_DISPATCHER_STOPPED));
}

TEST_P(StateObserver, SeesStoppingWhileADeferredRequestIsOpen) {
  cudaq_host_call_t kept{};
  std::atomic<bool> deferred{false};
  b.on(kFn, [&](cudaq_host_call_t &call) {
    kept = call;
    deferred = true;
    return CUDAQ_HOST_CALL_DEFERRED;
  });
  b.start();
  ASSERT_TRUE(watch.sees(CUDAQ_DISPATCHER_RUNNING));
  slot = b.client.send(kFn, {}, 1);
  ASSERT_TRUE(eventually([&] { return deferred.load(); }));
  store_release(b.dispatcher->shutdown, 1);
  EXPECT_TRUE(watch.sees(CUDAQ_DISPATCHER_STOPPING));
  CUDAQ_EXPECT_OK(cudaq_host_complete_deferred(b.get(), &kept.job, 5, 0));
  EXPECT_TRUE(watch.sees(CUDAQ_DISPATCHER_STOPPED));
  EXPECT_EQ(b.client.collect(slot).header.status, 5);
  watch.end();
}

// Known failures 48, 49.
TEST_P(StateObserver, SeesProcessedStandStillWhenAStopTimesOut) {
  closed.open();
  b.start();
  ASSERT_TRUE(watch.sees(CUDAQ_DISPATCHER_RUNNING));
  EXPECT_EQ(b.client.call(kFn, {}, 0).header.status, 0);
  EXPECT_EQ(b.client.call(kFn, {}, 1).header.status, 0);
  EXPECT_TRUE(eventually([&] { return processed() == 2; }));
  closed.close();
  slot = b.client.send(kFn, {}, 2);
  ASSERT_TRUE(eventually([&] { return closed.occupied(); }));
  EXPECT_EQ(cudaq_dispatcher_stop_timeout(b.get(), ms(50)), CUDAQ_ERR_TIMEOUT);
  EXPECT_EQ(processed(), 2u);
  closed.open();
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.get()));
  EXPECT_EQ(processed(), 3u);
  EXPECT_EQ(detail::load_relaxed(b.dispatcher->processed), 3u);
}

INSTANTIATE_TEST_SUITE_P(Paths, StateObserver,
                         ::testing::Values(flavour{"Inline", 0, false, CUDAQ_WAIT_SPIN_YIELD},
                                           flavour{"Pool", 2, false, CUDAQ_WAIT_SPIN_YIELD},
                                           flavour{"PoolBlock", 2, false, CUDAQ_WAIT_BLOCK},
                                           flavour{"Shared", 0, true, CUDAQ_WAIT_SPIN_YIELD},
                                           flavour{"SharedPool", 1, true, CUDAQ_WAIT_SPIN_YIELD}),
                         [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::test
