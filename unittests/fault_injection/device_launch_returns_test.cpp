// SPDX-License-Identifier: Apache-2.0
// A launch function that ends its thread instead of returning ends the process with its name.
#include "unittests/fault_injection/device_run.h"
#include "unittests/support/processes/process_signals.h"

namespace cudaq::realtime::test {
namespace {

class LaunchReturnsDeathTest : public device_run_test {};

TEST_F(LaunchReturnsDeathTest, OrTheLaunchFunctionIsNamedAtTheEndOfTheProcess) {
  expect_end_of_process(
      [] {
        device_run run({"Fifo"});
        run.launch_exits = true;
        (void)run.start();
      },
      "the launch function has ended its thread");
}

} // namespace
} // namespace cudaq::realtime::test
