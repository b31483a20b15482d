// SPDX-License-Identifier: Apache-2.0
// An instance of the provider shm.
#pragma once

#include "unittests/support/program_paths.h"
#include "unittests/transport/provider_library.h"

#include <unistd.h>

namespace cudaq::realtime::test {

inline const provider_library &shm_library() {
  static const provider_library loaded(CUDAQ_SHM_PROVIDER);
  return loaded;
}

/// A name that no other test uses at the same time.
inline std::string own_name(const char *subject) {
  return std::string("t") + std::to_string(::getpid()) + "-" + subject;
}

class provider_handle {
public:
  explicit provider_handle(const std::vector<std::string> &arguments) {
    status = shm_library().create(arguments, handle);
    if (status != CUDAQ_OK)
      text = shm_library().error_text();
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

  const cudaq_realtime_bridge_interface_t *const table = shm_library().table;
  cudaq_realtime_bridge_handle_t handle = nullptr;
  cudaq_status_t status = CUDAQ_OK;
  std::string text; ///< why create failed
};

} // namespace cudaq::realtime::test
