// SPDX-License-Identifier: Apache-2.0
// The provider shm as its loader sees it: the table that the library exports.
#pragma once

#include "cudaq/realtime/daemon/bridge/bridge_types.h"
#include "unittests/support/program_paths.h"

#include <dlfcn.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace cudaq::realtime::test {

inline void *provider_library() {
  static void *const library = ::dlopen(CUDAQ_SHM_PROVIDER, RTLD_NOW | RTLD_LOCAL);
  return library;
}

inline cudaq_realtime_bridge_interface_t *provider_table() {
  const auto getter = reinterpret_cast<cudaq_realtime_get_bridge_interface_fn_t>(
      ::dlsym(provider_library(), CUDAQ_REALTIME_BRIDGE_GETTER));
  return getter();
}

/// The text of the last call that failed on this thread.
inline std::string provider_error() {
  return reinterpret_cast<const char *(*)()>(::dlsym(provider_library(), CUDAQ_REALTIME_BRIDGE_ERROR_GETTER))();
}

/// A name that no other test uses at the same time.
inline std::string own_name(const char *subject) {
  return std::string("t") + std::to_string(::getpid()) + "-" + subject;
}

class provider_handle {
public:
  explicit provider_handle(std::vector<std::string> arguments) {
    std::vector<char *> argv;
    for (std::string &a : arguments)
      argv.push_back(a.data());
    status = table->create(&handle, static_cast<int>(argv.size()), argv.data());
    if (status != CUDAQ_OK)
      text = provider_error();
  }
  ~provider_handle() { destroy(); }
  provider_handle(const provider_handle &) = delete;
  provider_handle &operator=(const provider_handle &) = delete;

  void destroy() {
    if (handle == nullptr)
      return;
    table->disconnect(handle);
    table->destroy(handle);
    handle = nullptr;
  }
  cudaq_cpu_dataplane_t dataplane() const {
    cudaq_cpu_dataplane_t plane{};
    table->get_cpu_dataplane(handle, &plane);
    return plane;
  }

  cudaq_realtime_bridge_interface_t *table = provider_table();
  cudaq_realtime_bridge_handle_t handle = nullptr;
  cudaq_status_t status = CUDAQ_OK;
  std::string text; ///< why create failed
};

} // namespace cudaq::realtime::test
