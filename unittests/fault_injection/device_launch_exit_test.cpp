// SPDX-License-Identifier: Apache-2.0
// A launch function that ends the thread of start (pthread_exit).
#include "unittests/fault_injection/device_run.h"

namespace cudaq::realtime::test {
namespace {

class DeviceLaunchExit : public device_run_test {
protected:
  static void start_and_exit(device_run &run) {
    run.launch_exits = true;
    std::thread([&] { (void)run.start(); }).join();
    run.launch_exits = false;
  }
  static void expect_serves(device_run &run) {
    CUDAQ_ASSERT_OK(run.start());
    EXPECT_EQ(run.client.call(device_run::kFn, {}).header.status, 0);
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(run.get));
  }
};

// start waits 5 s for the kernel.
TEST_F(DeviceLaunchExit, ThatLeavesAKernelLeavesARunThatStopEnds) {
  device_run run({"Fifo"});
  start_and_exit(run);
  EXPECT_EQ(run.state(), CUDAQ_DISPATCHER_FAILED);
  EXPECT_EQ(cudaq_dispatcher_start(run.get), CUDAQ_ERR_STATE) << "a second kernel beside the first";
  EXPECT_EQ(cudaq_dispatcher_stop_timeout(run.get, ms(20)), CUDAQ_ERR_TIMEOUT);
  EXPECT_EQ(run.state(), CUDAQ_DISPATCHER_FAILED);
  run.closed.open();
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(run.get));
  EXPECT_EQ(run.state(), CUDAQ_DISPATCHER_STOPPED);
  expect_serves(run);
}

TEST_F(DeviceLaunchExit, ThatLeavesNoKernelLeavesNoRun) {
  device_run run({"Fifo"});
  run.closed.open();
  start_and_exit(run);
  EXPECT_EQ(run.state(), CUDAQ_DISPATCHER_WIRED);
  expect_serves(run);
}

} // namespace
} // namespace cudaq::realtime::test
