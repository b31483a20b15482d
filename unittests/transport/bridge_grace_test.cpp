// SPDX-License-Identifier: Apache-2.0
// disconnect while the provider's connect does not return. The instance waits 0.1 s for it, not the default.
#include "lib/transport/bridge/bridge_registry.h"
#include "unittests/transport/bridge_fixture.h"

namespace cudaq::realtime::test {
namespace {

using detail::bridge_instance;
using detail::bridge_registry;

/// As cudaq_bridge_create_from_library, with this grace.
cudaq_realtime_bridge_handle_t create_with_grace(double_script &script, std::chrono::milliseconds grace) {
  const std::string library = double_library("double_v3");
  void *opened = nullptr;
  const detail::provider_table *table = nullptr;
  EXPECT_TRUE(detail::open_library(library, opened).ok());
  EXPECT_TRUE(bridge_registry::library_of(opened).table(library, table).ok());
  const auto instance = std::make_shared<bridge_instance>(library, *table, grace);
  std::string option = script_option(script);
  char *argv[] = {option.data()};
  EXPECT_TRUE(instance->create(1, argv).ok());
  return bridge_registry::add(instance);
}

TEST(BridgeConnect, ThatIgnoresDisconnectIsReportedAndCanBeAwaited) {
  double_script script;
  script.does["connect"] = act::hold;
  const cudaq_realtime_bridge_handle_t handle = create_with_grace(script, std::chrono::milliseconds(100));
  cudaq_status_t connected = CUDAQ_OK;
  std::thread waiting([&] { connected = cudaq_bridge_connect(handle); });
  EXPECT_TRUE(eventually([&] { return script.connecting.load(); }));
  EXPECT_EQ(cudaq_bridge_disconnect(handle), CUDAQ_ERR_TIMEOUT);
  EXPECT_TRUE(error_names({"connect has not returned within 0.1 s", "call disconnect again"}));
  waiting.join(); // the provider still waits
  EXPECT_EQ(connected, CUDAQ_ERR_STATE);
  for (const char *refused : {"connect", "launch", "destroy", "get_ring_geometry"})
    for (const bridge_call &c : all_calls())
      if (c.name == std::string(refused)) {
        EXPECT_EQ(c.call(handle), CUDAQ_ERR_STATE) << refused;
        EXPECT_TRUE(error_names({"the state is cancelling"}));
      }
  std::thread release([&] { script.released = true; });
  EXPECT_TRUE(eventually([&] { return cudaq_bridge_disconnect(handle) == CUDAQ_OK; })); // waits on
  release.join();
  CUDAQ_EXPECT_OK(cudaq_bridge_destroy(handle));
  EXPECT_EQ(script.logged(), "create connect disconnect destroy") << "disconnect is called once";
  EXPECT_EQ(script.overlaps.load(), 0);
}

TEST(BridgeConnect, IsAwaitedForFiveSecondsByDefault) {
  EXPECT_EQ(bridge_instance::kCancelGrace, std::chrono::seconds(5));
}

} // namespace
} // namespace cudaq::realtime::test
