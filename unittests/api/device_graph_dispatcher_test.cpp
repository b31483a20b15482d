// SPDX-License-Identifier: Apache-2.0
// A dispatcher in GRAPH_LAUNCH mode on the device path, as far as no device is needed: rules, wiring, refused starts.
#include "unittests/api/device_path_fixture.h"

namespace cudaq::realtime::test {
namespace {

cudaq_dispatcher_config_t graph_config() {
  cudaq_dispatcher_config_t config = device_config();
  config.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
  return config;
}

cudaq_dispatch_graph_io_t one_context() {
  static std::uint64_t words[8];
  static void *contexts[] = {words};
  return {sizeof(cudaq_dispatch_graph_io_t), CUDAQ_GRAPH_IO_FORWARDED, 0, 1, contexts};
}

class DeviceGraphDispatcher : public device_path_test {};

// Known failures 9, 11, 12.
TEST_F(DeviceGraphDispatcher, IsARegularKernelWithARingForItself) {
  const manager_handle manager;
  const auto refused = [&](const cudaq_dispatcher_config_t &config, const std::vector<std::string> &words) {
    cudaq_dispatcher_t *d = nullptr;
    EXPECT_EQ(cudaq_dispatcher_create(manager.get, &config, &d), CUDAQ_ERR_UNSUPPORTED);
    EXPECT_TRUE(error_names(words));
    EXPECT_EQ(d, nullptr);
  };
  for (const cudaq_kernel_type_t kernel : {CUDAQ_KERNEL_COOPERATIVE, CUDAQ_KERNEL_UNIFIED}) {
    cudaq_dispatcher_config_t config = graph_config();
    config.kernel_type = kernel;
    refused(config, {"config->dispatch_mode is 1", "config->kernel_type is " + std::to_string(kernel)});
  }
  cudaq_dispatcher_config_t shared = graph_config();
  shared.shared_ring_mode = 1;
  refused(shared, {"config->shared_ring_mode is 1", "config->dispatch_mode is 1"});
}

TEST_F(DeviceGraphDispatcher, NeedsContextsBesideWhatEveryKernelNeeds) {
  device_parts p(graph_config());
  p.wire("rtc2");
  EXPECT_EQ(cudaq_dispatcher_start(p.d), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"not wired: cudaq_dispatcher_set_graph_io was not called"}));
  EXPECT_EQ(p.state(), CUDAQ_DISPATCHER_CREATED);
  const cudaq_dispatch_graph_io_t io = one_context();
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_graph_io(p.d, &io));
  EXPECT_EQ(p.state(), CUDAQ_DISPATCHER_WIRED);
}

TEST_F(DeviceGraphDispatcher, RefusesContextsThatAreNone) {
  const device_parts p(graph_config());
  const auto refused = [&](cudaq_dispatch_graph_io_t io, const std::vector<std::string> &words) {
    EXPECT_EQ(cudaq_dispatcher_set_graph_io(p.d, &io), CUDAQ_ERR_INVALID_ARG);
    EXPECT_TRUE(error_names(words));
  };
  cudaq_dispatch_graph_io_t io = one_context();
  io.struct_size += 8;
  refused(io, {"cudaq_dispatcher_set_graph_io", "graph_io: struct_size is"});
  io = one_context();
  io.graph_io_kind = 2;
  refused(io, {"graph_io->graph_io_kind is 2", "1 (publishing)"});
  io = one_context();
  io.num_schedulers = 33;
  refused(io, {"graph_io->num_schedulers is 33", "1..32"});
  io = one_context();
  io.contexts = nullptr;
  refused(io, {"graph_io->contexts is NULL", "num_contexts is 1"});
  EXPECT_EQ(cudaq_dispatcher_set_graph_io(p.d, nullptr), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"graph_io is NULL"}));
}

TEST_F(DeviceGraphDispatcher, ContextsBelongToItsModeAndPath) {
  const cudaq_dispatch_graph_io_t io = one_context();
  const device_parts calls;
  EXPECT_EQ(cudaq_dispatcher_set_graph_io(calls.d, &io), CUDAQ_ERR_UNSUPPORTED);
  EXPECT_TRUE(error_names({"config->dispatch_mode is 0", "1 (graph launch)"}));
  bench host;
  EXPECT_EQ(cudaq_dispatcher_set_graph_io(host.get(), &io), CUDAQ_ERR_UNSUPPORTED);
  EXPECT_TRUE(error_names({"device path", "config->dispatch_path is 1 (host)"}));
}

TEST_F(DeviceGraphDispatcher, RefusedStartLeavesItWired) {
  device_parts p(graph_config());
  p.wire("rtc2");
  const cudaq_dispatch_graph_io_t io = one_context();
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_graph_io(p.d, &io));
  for (int again = 0; again < 2; ++again) {
    EXPECT_NE(cudaq_dispatcher_start(p.d), CUDAQ_OK);
    EXPECT_EQ(p.state(), CUDAQ_DISPATCHER_WIRED);
    EXPECT_EQ(p.flag, 5) << "an error must change nothing";
  }
  char text[1024] = {};
  CUDAQ_EXPECT_OK(cudaq_dispatcher_dump_state(p.d, text, sizeof(text), nullptr));
  EXPECT_NE(std::string(text).find("state: wired"), std::string::npos) << text;
}

} // namespace
} // namespace cudaq::realtime::test
