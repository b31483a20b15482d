// SPDX-License-Identifier: Apache-2.0
// Wiring, states and refused starts of the device path, as far as no device is needed.
#include "unittests/api/device_path_fixture.h"

#include "lib/api/manager.h"

#include <algorithm>

namespace cudaq::realtime::test {
namespace {

class DevicePath : public device_path_test {};

cudaq_dispatcher_config_t unified_config() {
  cudaq_dispatcher_config_t config{};
  config.kernel_type = CUDAQ_KERNEL_UNIFIED;
  return config;
}

TEST_F(DevicePath, IsWiredOnceAllFourAreSetInAnyOrder) {
  std::string order = "clrt";
  do {
    device_parts p;
    for (const char what : order) {
      EXPECT_EQ(p.state(), CUDAQ_DISPATCHER_CREATED) << order;
      EXPECT_EQ(cudaq_dispatcher_start(p.d), CUDAQ_ERR_INVALID_ARG);
      EXPECT_TRUE(error_names({"not wired: cudaq_dispatcher_set_"}));
      CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(p.d));
      p.wire({what});
    }
    EXPECT_EQ(p.state(), CUDAQ_DISPATCHER_WIRED) << order;
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(DevicePath, EitherFormOfTheLaunchFunctionWires) {
  device_parts p;
  p.wire("rtc");
  EXPECT_EQ(cudaq_dispatcher_start(p.d), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"not wired: cudaq_dispatcher_set_launch_fn was not called"}));
  p.wire("2");
  EXPECT_EQ(p.state(), CUDAQ_DISPATCHER_WIRED);
  p.wire("l");
  EXPECT_EQ(p.state(), CUDAQ_DISPATCHER_WIRED);
  EXPECT_EQ(cudaq_dispatcher_set_launch_fn(p.d, nullptr), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"cudaq_dispatcher_set_launch_fn: launch_fn is NULL"}));
  EXPECT_EQ(p.state(), CUDAQ_DISPATCHER_WIRED);
}

TEST_F(DevicePath, UnifiedNeedsItsOwnLaunchFunctionAndNoRing) {
  device_parts p(unified_config());
  p.wire("tc");
  for (const char *of_others : {"l", "2", "r"}) { // wiring these is legal and has no effect
    p.wire(of_others);
    EXPECT_EQ(cudaq_dispatcher_start(p.d), CUDAQ_ERR_INVALID_ARG);
    EXPECT_TRUE(error_names({"not wired: cudaq_dispatcher_set_unified_launch with a launch_fn was not called"}));
  }
  p.wire("u");
  EXPECT_EQ(p.state(), CUDAQ_DISPATCHER_WIRED);
}

TEST_F(DevicePath, CallsOfTheOtherPathAreUnsupported) {
  device_parts p;
  const auto handler = [](cudaq_host_call_t *, void *) -> std::int32_t { return 0; };
  EXPECT_EQ(cudaq_dispatcher_set_host_handler_v2(p.d, 1, handler, nullptr, nullptr), CUDAQ_ERR_UNSUPPORTED);
  EXPECT_TRUE(error_names({"host path", "config->dispatch_path is 0 (device)"}));
  const cudaq_host_job_t job{};
  EXPECT_EQ(cudaq_host_complete_deferred(p.d, &job, 0, 0), CUDAQ_ERR_UNSUPPORTED);
  EXPECT_TRUE(error_names({"config->dispatch_path is 0 (device)"}));
  EXPECT_EQ(cudaq_dispatcher_set_unified_launch(p.d, launches_nothing_unified, nullptr), CUDAQ_ERR_UNSUPPORTED);
  EXPECT_TRUE(error_names({"config->kernel_type is 0", "unified"}));
  const cudaq_dispatcher_config_t config = device_config();
  const cudaq_function_table_t table{};
  EXPECT_EQ(cudaq_host_dispatcher_loop(&config, &p.view, &table, nullptr, 0, nullptr, &p.flag, &p.stats),
            CUDAQ_ERR_UNSUPPORTED);
  EXPECT_TRUE(error_names({"config->dispatch_path is 0 (device)"}));
}

TEST(HostPath, RefusesLaunchFunctions) {
  bench b;
  EXPECT_EQ(cudaq_dispatcher_set_launch_fn(b.get(), launches_nothing), CUDAQ_ERR_UNSUPPORTED);
  EXPECT_TRUE(error_names({"device path", "config->dispatch_path is 1 (host)"}));
  EXPECT_EQ(cudaq_dispatcher_set_launch_fn_v2(b.get(), launches_nothing_v2), CUDAQ_ERR_UNSUPPORTED);
  EXPECT_EQ(cudaq_dispatcher_set_unified_launch(b.get(), launches_nothing_unified, nullptr), CUDAQ_ERR_UNSUPPORTED);
}

void expect_refused_start_changes_nothing(device_parts &p) {
  const bool device = has_device();
  for (int again = 0; again < 2; ++again) {
    const cudaq_status_t status = cudaq_dispatcher_start(p.d);
    EXPECT_NE(status, CUDAQ_OK);
    if (!device) {
      EXPECT_EQ(status, CUDAQ_ERR_CUDA);
      EXPECT_TRUE(error_names({"cudaq_dispatcher_start: ", "cudaError"}));
    }
    EXPECT_EQ(p.state(), CUDAQ_DISPATCHER_WIRED);
    EXPECT_EQ(p.flag, 5) << "an error must change nothing";
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(p.d));
  }
}

TEST_F(DevicePath, RefusedStartLeavesItWired) {
  for (const char *launch : {"l", "2"}) {
    device_parts p;
    p.wire(std::string("rtc") + launch);
    expect_refused_start_changes_nothing(p);
  }
  device_parts unified(unified_config());
  unified.wire("tcu");
  expect_refused_start_changes_nothing(unified);
}

TEST_F(DevicePath, CanBeReadWithoutEverHavingRun) {
  device_parts p;
  p.wire("rtcl");
  for (int started = 0; started < 2; ++started) {
    cudaq_dispatcher_stats_t stats{};
    stats.struct_size = sizeof(stats);
    CUDAQ_EXPECT_OK(cudaq_dispatcher_get_stats(p.d, &stats));
    EXPECT_EQ(stats.received + stats.responded + stats.in_flight + stats.heartbeat + stats.busy_slots, 0u);
    EXPECT_EQ(stats.state, CUDAQ_DISPATCHER_WIRED);
    std::uint64_t processed = 7;
    CUDAQ_EXPECT_OK(cudaq_dispatcher_get_processed(p.d, &processed));
    EXPECT_EQ(processed, 0u);
    char text[1024] = {};
    CUDAQ_EXPECT_OK(cudaq_dispatcher_dump_state(p.d, text, sizeof(text), nullptr));
    EXPECT_NE(std::string(text).find("state: wired"), std::string::npos) << text;
    EXPECT_NE(std::string(text).find("device 0"), std::string::npos) << text;
    EXPECT_NE(cudaq_dispatcher_start(p.d), CUDAQ_OK);
  }
}

// Known failure 14.
TEST_F(DevicePath, ExcludesAHostDispatcherOnTheSameRing) {
  device_parts p;
  p.wire("rtcl");
  host_dispatcher_handle host(p.manager.get, p.ring, {host_entry("reverse", reverse_handler)},
                              host_config(p.ring.shape()));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(host.get));
  EXPECT_EQ(cudaq_dispatcher_start(p.d), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"another dispatcher runs on this ring"}));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(host.get));
  EXPECT_NE(cudaq_dispatcher_start(p.d), CUDAQ_OK);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_start(host.get)) << "a refused start must release the ring";
}

TEST(LaunchState, IsNullOutsideOfAStart) { EXPECT_EQ(cudaq_dispatch_launch_state(), nullptr); }

// Known failure 5.
TEST(ManagerBlocks, AreCountedPerDeviceAndWithoutOneself) {
  cudaq_dispatch_manager_t m;
  const int a = 0, b = 0, c = 0;
  CUDAQ_EXPECT_OK(cudaq_dispatch_manager_reserve_blocks(&m, 0, 5));
  CUDAQ_EXPECT_OK(cudaq_dispatch_manager_reserve_blocks(&m, 1, 100));
  EXPECT_EQ(m.add_resident(&a, 0, 7), 5u);
  EXPECT_EQ(m.add_resident(&a, 0, 7), 5u);
  EXPECT_EQ(m.add_resident(&b, 0, 2), 12u);
  EXPECT_EQ(m.add_resident(&c, 1, 2), 100u);
  m.remove_resident(&a);
  CUDAQ_EXPECT_OK(cudaq_dispatch_manager_reserve_blocks(&m, 0, 0));
  EXPECT_EQ(m.add_resident(&c, 0, 1), 2u);
  CUDAQ_EXPECT_OK(cudaq_dispatch_manager_reserve_blocks(&m, 0, UINT32_MAX));
  EXPECT_EQ(m.add_resident(&a, 0, 1), UINT32_MAX) << "the sum must not wrap";
  EXPECT_EQ(cudaq_dispatch_manager_reserve_blocks(&m, -1, 1), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"device_id is -1"}));
}

} // namespace
} // namespace cudaq::realtime::test
