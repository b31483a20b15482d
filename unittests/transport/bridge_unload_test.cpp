// SPDX-License-Identifier: Apache-2.0
// A program that unloads the library after it has loaded a provider: the library stays, because the provider does.
#include "unittests/support/program_paths.h"
#include "unittests/transport/double_script.h"

#include "cudaq/realtime/daemon/bridge/bridge_interface.h"

#include <cstdio>
#include <dlfcn.h>
#include <gtest/gtest.h>

namespace cudaq::realtime::test {
namespace {

TEST(BridgeUnload, LibraryStaysWithTheProvidersThatItHasLoaded) {
  void *const library = dlopen(CUDAQ_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto create =
      reinterpret_cast<decltype(&cudaq_bridge_create_from_library)>(dlsym(library, "cudaq_bridge_create_from_library"));
  const auto connect =
      reinterpret_cast<decltype(&cudaq_bridge_connect_timeout)>(dlsym(library, "cudaq_bridge_connect_timeout"));
  const auto destroy = reinterpret_cast<decltype(&cudaq_bridge_destroy)>(dlsym(library, "cudaq_bridge_destroy"));
  ASSERT_TRUE(create != nullptr && connect != nullptr && destroy != nullptr);

  double_script script;
  script.does["connect"] = act::hold;
  char option[40];
  std::snprintf(option, sizeof(option), "script=%p", static_cast<void *>(&script));
  char *argv[] = {option};
  cudaq_realtime_bridge_handle_t handle = nullptr;
  const std::string provider = std::string(CUDAQ_TEST_DOUBLES) + "/libbridge_double_v3.so";
  ASSERT_EQ(create(&handle, provider.c_str(), 1, argv), CUDAQ_OK);
  ASSERT_EQ(connect(handle, 0), CUDAQ_ERR_TIMEOUT); // a thread of the library waits in the provider

  dlclose(library);
  EXPECT_NE(dlopen(CUDAQ_LIBRARY, RTLD_NOW | RTLD_NOLOAD), nullptr) << "the library is gone";
  script.released = true;
  ASSERT_EQ(connect(handle, UINT64_MAX), CUDAQ_OK);
  EXPECT_EQ(destroy(handle), CUDAQ_OK);
}

} // namespace
} // namespace cudaq::realtime::test
