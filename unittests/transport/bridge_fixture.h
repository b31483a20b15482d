// SPDX-License-Identifier: Apache-2.0
// Instances of the scripted double, for tests of the loader.
#pragma once

#include "unittests/support/api_fixture.h"
#include "unittests/support/program_paths.h"
#include "unittests/transport/double_script.h"

#include "cudaq/realtime/daemon/bridge/bridge_interface.h"

#include <cstdio>

namespace cudaq::realtime::test {

inline std::string double_library(const std::string &name) {
  return std::string(CUDAQ_TEST_DOUBLES) + "/libbridge_" + name + ".so";
}

inline std::string script_option(const double_script &script) {
  char text[40];
  std::snprintf(text, sizeof(text), "script=%p", static_cast<const void *>(&script));
  return text;
}

/// Creates an instance of a double with this script. `more`: options after it.
inline cudaq_status_t create_double(cudaq_realtime_bridge_handle_t &out, double_script &script,
                                    const std::string &name = "double_v3", std::vector<std::string> more = {}) {
  more.insert(more.begin(), script_option(script));
  std::vector<char *> argv;
  for (std::string &option : more)
    argv.push_back(option.data());
  return cudaq_bridge_create_from_library(&out, double_library(name).c_str(), static_cast<int>(argv.size()),
                                          argv.data());
}

/// An instance of the double. The destructor releases what it holds, and destroys it.
class double_bridge {
public:
  explicit double_bridge(std::map<std::string, act> does = {}, const std::string &name = "double_v3") {
    script.does = std::move(does);
    CUDAQ_EXPECT_OK(create_double(handle, script, name));
  }
  ~double_bridge() {
    if (handle == nullptr)
      return;
    script.released = true;
    const auto destroyed = [this] { return cudaq_bridge_destroy(handle) != CUDAQ_ERR_STATE; };
    EXPECT_TRUE(eventually(destroyed)) << cudaq_last_error_message();
    EXPECT_EQ(script.overlaps.load(), 0);
  }
  double_bridge(const double_bridge &) = delete;
  double_bridge &operator=(const double_bridge &) = delete;

  bool connect_runs() {
    return eventually([this] { return script.connecting.load(); });
  }
  void destroy() {
    CUDAQ_EXPECT_OK(cudaq_bridge_destroy(handle));
    handle = nullptr;
  }

  double_script script;
  cudaq_realtime_bridge_handle_t handle = nullptr;
};

/// Brings an instance into a state of lib/transport/bridge/bridge_instance.h.
inline void bring_to(double_bridge &b, const std::string &state) {
  if (state == "created")
    return;
  if (state == "connecting") {
    b.script.does["connect"] = act::wait_for_disconnect;
    ASSERT_EQ(cudaq_bridge_connect_timeout(b.handle, 0), CUDAQ_ERR_TIMEOUT);
    ASSERT_TRUE(b.connect_runs());
    return;
  }
  CUDAQ_ASSERT_OK(cudaq_bridge_connect(b.handle));
  if (state == "connected")
    return;
  CUDAQ_ASSERT_OK(cudaq_bridge_launch(b.handle));
  if (state == "launched")
    return;
  CUDAQ_ASSERT_OK(cudaq_bridge_disconnect(b.handle));
  ASSERT_EQ(state, "disconnected");
}

/// Every function that takes a handle, by the name of the entry that it calls.
struct bridge_call {
  const char *name;
  cudaq_status_t (*call)(cudaq_realtime_bridge_handle_t);
};
inline const std::vector<bridge_call> &all_calls() {
  static const std::vector<bridge_call> calls = {
      {"connect", [](void *h) { return cudaq_bridge_connect_timeout(h, 50000000); }},
      {"launch", [](void *h) { return cudaq_bridge_launch(h); }},
      {"disconnect", [](void *h) { return cudaq_bridge_disconnect(h); }},
      {"destroy", [](void *h) { return cudaq_bridge_destroy(h); }},
      {"get_transport_context",
       [](void *h) {
         cudaq_ringbuffer_t ring;
         return cudaq_bridge_get_transport_context(h, RING_BUFFER, &ring);
       }},
      {"get_cpu_dataplane",
       [](void *h) {
         cudaq_cpu_dataplane_t plane;
         return cudaq_bridge_get_cpu_dataplane(h, &plane);
       }},
      {"get_endpoint_info",
       [](void *h) {
         char line[64];
         return cudaq_bridge_get_endpoint_info(h, line, sizeof(line));
       }},
      {"get_ring_geometry",
       [](void *h) {
         std::uint32_t slots, size;
         return cudaq_bridge_get_ring_geometry(h, &slots, &size);
       }},
      {"set_function_table",
       [](void *h) {
         cudaq_function_entry_t entry{};
         const cudaq_function_table_t table{&entry, 1};
         return cudaq_bridge_set_function_table(h, &table);
       }},
  };
  return calls;
}

} // namespace cudaq::realtime::test
