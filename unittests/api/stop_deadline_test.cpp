// SPDX-License-Identifier: Apache-2.0
// Stop keeps its deadline, independent of handlers and other threads.
#include "unittests/support/api_fixture.h"

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kFn = 77;

class StopUnderTraffic : public ::testing::TestWithParam<std::uint32_t> {
protected:
  void SetUp() override { b.options.handler_pool_size = GetParam(); }
  bench b;
  gate closed;
};

// Known failures 12, 13.
TEST_P(StopUnderTraffic, StuckHandlerGivesTimeoutAndStoppingAndDumpNamesSlotAndFunction) {
  b.on(kFn, [&](cudaq_host_call_t &) { return closed.pass(), 5; });
  b.start();
  b.client.set_next_slot(0);
  const std::uint32_t slot = b.client.send(kFn, {}, 9);
  ASSERT_TRUE(eventually([&] { return closed.occupied(); }));
  EXPECT_EQ(b.dispatcher->stats().busy_slots, 1u);
  EXPECT_EQ(b.dispatcher->stats().in_flight, 1u);
  const double took =
      milliseconds([&] { EXPECT_EQ(cudaq_dispatcher_stop_timeout(b.get(), ms(100)), CUDAQ_ERR_TIMEOUT); });
  EXPECT_GE(took, 99);
  EXPECT_LT(took, 20000) << "the handler takes longer";
  EXPECT_TRUE(error_names({"cudaq_dispatcher_stop_timeout", "0.100 s", "handler"}));
  EXPECT_EQ(b.dispatcher->state(), CUDAQ_DISPATCHER_STOPPING);
  const std::string text = b.dispatcher->dump();
  EXPECT_NE(text.find("stopping"), std::string::npos) << text;
  EXPECT_NE(text.find("function 0x0000004d"), std::string::npos) << text;
  EXPECT_NE(text.find("for slot " + std::to_string(slot)), std::string::npos) << text;
  // Only stop and destroy are allowed now.
  EXPECT_EQ(cudaq_dispatcher_start(b.get()), CUDAQ_ERR_STATE);
  EXPECT_EQ(cudaq_dispatcher_set_ringbuffer(b.get(), &b.ring.ring), CUDAQ_ERR_STATE);
  EXPECT_EQ(cudaq_dispatcher_stop_timeout(b.get(), ms(20)), CUDAQ_ERR_TIMEOUT);
  closed.open();
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.get()));
  EXPECT_EQ(b.dispatcher->state(), CUDAQ_DISPATCHER_STOPPED);
  EXPECT_EQ(b.client.collect(slot).header.status, 5);
  EXPECT_EQ(b.dispatcher->stats().in_flight, 0u);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_start(b.get()));
}

// Known failure 12.
TEST_P(StopUnderTraffic, DestroyTimesOutKeepsTheHandleAndSucceedsOnceTheHandlerIsBack) {
  b.on(kFn, [&](cudaq_host_call_t &) { return closed.pass(), 0; });
  b.options.grace_period_ns = ms(50);
  b.start();
  b.client.send(kFn, {}, 1);
  ASSERT_TRUE(eventually([&] { return closed.occupied(); }));
  EXPECT_EQ(cudaq_dispatcher_destroy(b.get()), CUDAQ_ERR_TIMEOUT);
  EXPECT_EQ(cudaq_dispatcher_destroy(b.get()), CUDAQ_ERR_TIMEOUT);
  EXPECT_EQ(cudaq_dispatch_manager_destroy(b.manager.get), CUDAQ_ERR_STATE);
  EXPECT_EQ(b.dispatcher->state(), CUDAQ_DISPATCHER_STOPPING);
  closed.open();
  EXPECT_TRUE(eventually([&] { return !closed.occupied(); }));
  EXPECT_TRUE(eventually([&] { return cudaq_dispatcher_stop(b.get()) == CUDAQ_OK; }));
} // the fixture's destroy must return CUDAQ_OK

TEST_P(StopUnderTraffic, ShortDeadlineHoldsBesideAnotherThreadsLongStop) {
  b.on(kFn, [&](cudaq_host_call_t &) { return closed.pass(), 0; });
  b.start();
  b.client.send(kFn, {}, 1);
  ASSERT_TRUE(eventually([&] { return closed.occupied(); }));
  std::thread patient([&] { cudaq_dispatcher_stop_timeout(b.get(), ms(60000)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const double took =
      milliseconds([&] { EXPECT_EQ(cudaq_dispatcher_stop_timeout(b.get(), ms(50)), CUDAQ_ERR_TIMEOUT); });
  EXPECT_LT(took, 20000) << "it must not wait for the other thread's stop";
  closed.open();
  patient.join();
  cudaq_dispatcher_stop(b.get());
}

// A handler sets options of its own dispatcher while another thread stops it. Without the refusal each would wait for
// the other.
TEST_P(StopUnderTraffic, SetterCalledByAHandlerDuringStopIsRefusedAtOnce) {
  std::atomic<bool> go{false}, inside{false};
  cudaq_status_t status = CUDAQ_OK;
  b.on(kFn, [&](cudaq_host_call_t &) {
    inside = true;
    eventually([&] { return go.load(); });
    status = cudaq_dispatcher_set_options(b.get(), &b.options);
    return 0;
  });
  b.start();
  b.client.send(kFn, {}, 1);
  ASSERT_TRUE(eventually([&] { return inside.load(); }));
  std::thread opener([&] {
    eventually([&] { return load_acquire(b.dispatcher->shutdown) != 0; });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    go = true;
  });
  const double took = milliseconds([&] { CUDAQ_EXPECT_OK(cudaq_dispatcher_stop_timeout(b.get(), ms(60000))); });
  opener.join();
  EXPECT_LT(took, 20000);
  EXPECT_TRUE(eventually([&] { return cudaq_dispatcher_stop(b.get()) == CUDAQ_OK; }));
  EXPECT_EQ(status, CUDAQ_ERR_STATE);
}

// The caller's flag has ended the loop while a handler still runs. start and the setters join the threads of that run
// first, but must not wait for the thread that calls them.
TEST_P(StopUnderTraffic, HandlerThatRestartsAfterTheCallersFlagIsRefusedAtOnce) {
  std::atomic<bool> inside{false}, done{false};
  double took = 0;
  cudaq_status_t status = CUDAQ_OK;
  b.on(kFn, [&](cudaq_host_call_t &) {
    inside = true;
    eventually([&] { return b.dispatcher->state() == CUDAQ_DISPATCHER_STOPPED; }, std::chrono::milliseconds(500));
    took = milliseconds([&] { status = cudaq_dispatcher_start(b.get()); });
    done = true;
    return 0;
  });
  b.options.grace_period_ns = ms(60000);
  b.start();
  b.client.send(kFn, {}, 1);
  ASSERT_TRUE(eventually([&] { return inside.load(); }));
  store_release(b.dispatcher->shutdown, 1);
  ASSERT_TRUE(eventually([&] { return done.load(); }));
  EXPECT_EQ(status, CUDAQ_ERR_STATE);
  EXPECT_LT(took, 20000);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.get()));
  EXPECT_EQ(b.dispatcher->state(), CUDAQ_DISPATCHER_STOPPED);
}

TEST_P(StopUnderTraffic, StopAndDestroyFromAHandlerAreRefused) {
  std::vector<cudaq_status_t> status;
  b.on(kFn, [&](cudaq_host_call_t &) {
    status = {cudaq_dispatcher_stop(b.get()), cudaq_dispatcher_stop_timeout(b.get(), ~0ull),
              cudaq_dispatcher_destroy(b.get()), cudaq_dispatcher_start(b.get()),
              cudaq_dispatcher_set_options(b.get(), &b.options)};
    return 7;
  });
  b.start();
  EXPECT_EQ(b.client.call(kFn, {}).header.status, 7);
  EXPECT_EQ(status, std::vector<cudaq_status_t>(5, CUDAQ_ERR_STATE));
  EXPECT_EQ(b.dispatcher->state(), CUDAQ_DISPATCHER_RUNNING);
  EXPECT_EQ(b.client.call(kFn, {}).header.status, 7);
}

INSTANTIATE_TEST_SUITE_P(Pool, StopUnderTraffic, ::testing::Values(0u, 2u),
                         [](const auto &tested) { return tested.param == 0 ? "Inline" : "Pool"; });

TEST(StopUnderLoad, KeepsItsDeadlineAlthoughTheProducerGoesOn) {
  bench b({64, 64, false});
  b.on(kFn, [](cudaq_host_call_t &) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return 0;
  });
  b.start();
  std::atomic<bool> stop{false};
  std::thread producer([&] {
    std::uint32_t next = 0, oldest = 0;
    while (!stop) {
      answer got;
      if (cudaq_host_ringbuffer_slot_available(&b.ring.ring, next) == 1) {
        b.client.set_next_slot(next);
        next = (b.client.send(kFn, {}, next) + 1) % 64;
      } else if (b.client.try_collect(oldest, got)) {
        oldest = (oldest + 1) % 64;
      }
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop_timeout(b.get(), ms(20000))); // the ring is never empty
  EXPECT_EQ(b.dispatcher->state(), CUDAQ_DISPATCHER_STOPPED);
  stop = true;
  producer.join();
  EXPECT_TRUE(eventually([&] { return cudaq_dispatcher_stop(b.get()) == CUDAQ_OK; }));
}

} // namespace
} // namespace cudaq::realtime::test
