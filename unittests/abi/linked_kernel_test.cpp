// SPDX-License-Identifier: Apache-2.0
// The shared library finds the unified kernel's launch function in the program: it is a weak reference. This program
// has one of its own instead of the archive's.
#define CUDAQ_REALTIME_UPSTREAM_INTERFACE
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

#include <gtest/gtest.h>

extern "C" __attribute__((visibility("default"))) void
cudaq_launch_unified_dispatch_device_upstream(void *, size_t, cudaq_function_entry_t *, size_t, volatile int *,
                                              uint64_t *, cudaStream_t) {}

namespace cudaq::realtime::test {
namespace {

// Known failure 65.
TEST(LinkedKernel, ANullLauncherIsTheKernelOfTheProgram) {
  if ((cudaq_realtime_features() & CUDAQ_REALTIME_FEATURE_DEVICE_PATH) == 0)
    GTEST_SKIP() << "this build has no device path";
  cudaq_dispatch_manager_t *manager = nullptr;
  cudaq_dispatcher_t *d = nullptr;
  cudaq_dispatcher_config_t config{};
  config.kernel_type = CUDAQ_KERNEL_UNIFIED;
  config.slot_size = 256;
  ASSERT_EQ(cudaq_dispatch_manager_create(&manager), CUDAQ_OK);
  ASSERT_EQ(cudaq_dispatcher_create(manager, &config, &d), CUDAQ_OK);
  cudaq_function_entry_t entry{};
  const cudaq_function_table_t table{&entry, 1};
  volatile int flag = 0;
  std::uint64_t stats = 0, transport = 0;
  EXPECT_EQ(cudaq_dispatcher_set_function_table(d, &table), CUDAQ_OK);
  EXPECT_EQ(cudaq_dispatcher_set_control(d, &flag, &stats), CUDAQ_OK);
  cudaq_dispatcher_state_t state{};
  EXPECT_EQ(cudaq_dispatcher_get_state(d, &state), CUDAQ_OK);
  EXPECT_EQ(state, CUDAQ_DISPATCHER_CREATED);
  EXPECT_EQ(cudaq_dispatcher_set_unified_launch(d, nullptr, &transport), CUDAQ_OK);
  EXPECT_EQ(cudaq_dispatcher_get_state(d, &state), CUDAQ_OK);
  EXPECT_EQ(state, CUDAQ_DISPATCHER_WIRED);
  EXPECT_EQ(cudaq_dispatcher_destroy(d), CUDAQ_OK);
  EXPECT_EQ(cudaq_dispatch_manager_destroy(manager), CUDAQ_OK);
}

} // namespace
} // namespace cudaq::realtime::test
