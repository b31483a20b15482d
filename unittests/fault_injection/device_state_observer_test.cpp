// SPDX-License-Identifier: Apache-2.0
// unittests/api/state_observer_test.cpp for the device path: what a thread sees that reads state and counters all the
// time while CPU threads play the kernel.
#include "unittests/fault_injection/device_run.h"
#include "unittests/support/state_watch.h"

namespace cudaq::realtime::test {
namespace {

class DeviceStateObserver : public device_run_test, public ::testing::WithParamInterface<device_run_shape> {
protected:
  void SetUp() override {
    device_run_test::SetUp();
    if (IsSkipped())
      return;
    run = std::make_unique<device_run>(GetParam());
    watch = std::make_unique<state_watch>(*run);
  }
  void TearDown() override {
    watch.reset();
    run.reset();
    device_run_test::TearDown();
  }
  void start() {
    ASSERT_EQ(run->start(), CUDAQ_OK) << cudaq_last_error_message();
    ASSERT_TRUE(watch->sees(CUDAQ_DISPATCHER_RUNNING));
  }
  void start_and_get_stuck() {
    ASSERT_NO_FATAL_FAILURE(start());
    slot = run->client.send(device_run::kFn, {}, 1);
    ASSERT_TRUE(eventually([&] { return run->closed.occupied(); }));
  }

  std::unique_ptr<device_run> run;
  std::unique_ptr<state_watch> watch;
  std::uint32_t slot = 0;
};

// Known failure 48.
TEST_P(DeviceStateObserver, SeesLegalStepsWhileRunsStartAndStop) {
  run->closed.open();
  watch->restarts = true;
  for (std::uint32_t round = 0; round < 20; ++round) {
    ASSERT_NO_FATAL_FAILURE(start());
    EXPECT_EQ(run->client.call(device_run::kFn, {}, round).header.status, 0);
    if (round % 2 != 0)
      store_release(run->shutdown, 1); // races with stop
    CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(run->get));
    ASSERT_TRUE(watch->sees(CUDAQ_DISPATCHER_STOPPED));
  }
  std::uint64_t processed = 0;
  CUDAQ_EXPECT_OK(cudaq_dispatcher_get_processed(run->get, &processed));
  EXPECT_EQ(processed, 20u);
}

TEST_P(DeviceStateObserver, SeesStoppingFromAStopThatTimesOutUntilOneSucceeds) {
  ASSERT_NO_FATAL_FAILURE(start_and_get_stuck());
  EXPECT_EQ(cudaq_dispatcher_stop_timeout(run->get, ms(50)), CUDAQ_ERR_TIMEOUT);
  EXPECT_EQ(run->state(), CUDAQ_DISPATCHER_STOPPING);
  EXPECT_EQ(cudaq_dispatcher_start(run->get), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"stopping", "stop it first"}));
  EXPECT_EQ(cudaq_dispatcher_stop_timeout(run->get, 0), CUDAQ_ERR_TIMEOUT);
  ASSERT_TRUE(watch->sees(CUDAQ_DISPATCHER_STOPPING));
  run->closed.open();
  EXPECT_EQ(run->client.collect(slot).header.status, 0);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(run->get));
  ASSERT_TRUE(watch->sees(CUDAQ_DISPATCHER_STOPPED));
  const std::vector<transition> expected = {{CUDAQ_DISPATCHER_WIRED, CUDAQ_DISPATCHER_RUNNING},
                                            {CUDAQ_DISPATCHER_RUNNING, CUDAQ_DISPATCHER_STOPPING},
                                            {CUDAQ_DISPATCHER_STOPPING, CUDAQ_DISPATCHER_STOPPED}};
  EXPECT_EQ(watch->seen(), expected);
}

TEST_P(DeviceStateObserver, SeesNoStoppedAfterTheCallersFlagBeforeTheHandlerIsBack) {
  ASSERT_NO_FATAL_FAILURE(start_and_get_stuck());
  store_release(run->shutdown, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_NE(run->state(), CUDAQ_DISPATCHER_STOPPED);
  run->closed.open();
  EXPECT_TRUE(watch->sees(CUDAQ_DISPATCHER_STOPPED)) << "no call of stop is needed";
  EXPECT_EQ(run->client.collect(slot).header.status, 0);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(run->get));
}

TEST_P(DeviceStateObserver, SeesNothingOfAStartThatFails) {
  run->launch_fails = true;
  for (int n = 0; n < 5; ++n)
    EXPECT_EQ(run->start(), CUDAQ_ERR_CUDA);
  EXPECT_TRUE(watch->seen().empty());
  run->launch_fails = false;
  run->closed.open();
  ASSERT_NO_FATAL_FAILURE(start());
  EXPECT_EQ(run->client.call(device_run::kFn, {}).header.status, 0);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(run->get));
  ASSERT_TRUE(watch->sees(CUDAQ_DISPATCHER_STOPPED));
}

TEST_P(DeviceStateObserver, SeesFailedWhenTheDeviceIsLostUntilTheNextRun) {
  run->closed.open();
  watch->restarts = true;
  ASSERT_NO_FATAL_FAILURE(start());
  EXPECT_EQ(run->client.call(device_run::kFn, {}).header.status, 0);
  fake_cuda::lose_device(cudaErrorLaunchFailure);
  EXPECT_TRUE(watch->sees(CUDAQ_DISPATCHER_FAILED));
  store_release(run->shutdown, 1); // what plays the kernel ends
  EXPECT_TRUE(eventually(fake_cuda::idle));
  EXPECT_EQ(cudaq_dispatcher_stop(run->get), CUDAQ_ERR_CUDA);
  fake_cuda::lose_device(cudaSuccess);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(run->get));
  ASSERT_TRUE(watch->sees(CUDAQ_DISPATCHER_STOPPED));
  ASSERT_NO_FATAL_FAILURE(start());
  EXPECT_EQ(run->client.call(device_run::kFn, {}).header.status, 0);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(run->get));
}

INSTANTIATE_TEST_SUITE_P(Flavours, DeviceStateObserver,
                         ::testing::Values(device_run_shape{"Fifo"},
                                           device_run_shape{"Any", CUDAQ_ORDERING_ANY, 1, 64, {64, 256, false}}),
                         [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::test
