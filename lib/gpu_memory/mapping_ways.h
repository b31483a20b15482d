// SPDX-License-Identifier: Apache-2.0
// The ways to map device memory, each with the same interface. Only the files of this room include this.
#pragma once

#include "lib/base/cuda_device.h"
#include "lib/gpu_memory/mapped_device_memory.h"

#include <dlfcn.h>

namespace cudaq::realtime::detail {

using mapping_result = std::unique_ptr<mapped_device_memory>;

status_or_reason map_by_gdrcopy(const mapping_request &request, mapping_result &out);
/// Memory of Vulkan, imported into CUDA; with nic_registration memory of CUDA, imported into Vulkan.
status_or_reason map_by_vulkan(const mapping_request &request, mapping_result &out);
status_or_reason map_coherent(const mapping_request &request, mapping_result &out);

/// Sets device memory to zero on a stream of its own: the legacy stream would wait for kernels that run.
status_or_reason zero_device_memory(void *device, std::size_t bytes);

/// A reason with CUDAQ_ERR_UNSUPPORTED.
template <class... Values>
status_or_reason lacks(const char *format, Values... values) {
  if constexpr (sizeof...(Values) == 0)
    return make_reason(CUDAQ_ERR_UNSUPPORTED, "%s", format);
  else
    return make_reason(CUDAQ_ERR_UNSUPPORTED, format, values...);
}

/// Maps memory of this class.
template <class Memory>
status_or_reason map_as(const mapping_request &request, mapping_result &out) {
  auto memory = std::make_unique<Memory>();
  if (status_or_reason refused = memory->map(request))
    return refused;
  out = std::move(memory);
  return {};
}

/// A library that is opened at run time. It stays loaded: each load of a driver takes some of the memory for
/// thread-local variables that the system reserves for libraries, and unloading does not give it back.
class opened_library {
public:
  opened_library() = default;
  ~opened_library() {
    if (handle_ != nullptr)
      dlclose(handle_);
  }
  opened_library(const opened_library &) = delete;
  opened_library &operator=(const opened_library &) = delete;

  bool open(const char *name) { return (handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) != nullptr; }
  /// Keeps a library that another one has loaded. No effect if it is not loaded.
  static void keep(const char *name) {
    if (void *const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE))
      dlclose(handle);
  }
  template <class Function>
  bool find(Function &out, const char *name) const {
    out = reinterpret_cast<Function>(dlsym(handle_, name));
    return out != nullptr;
  }

private:
  void *handle_ = nullptr;
};

} // namespace cudaq::realtime::detail
