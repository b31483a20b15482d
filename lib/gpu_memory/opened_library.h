// SPDX-License-Identifier: Apache-2.0
// Libraries that are opened at run time, and reasons that say what a machine lacks. No CUDA: a client of the transport
// shm uses this, too.
#pragma once

#include "lib/base/error_text.h"

#include <dlfcn.h>

namespace cudaq::realtime::detail {

/// A reason with CUDAQ_ERR_UNSUPPORTED.
template <class... Values>
expected<> lacks(const char *format, Values... values) {
  if constexpr (sizeof...(Values) == 0)
    return make_reason(CUDAQ_ERR_UNSUPPORTED, "%s", format);
  else
    return make_reason(CUDAQ_ERR_UNSUPPORTED, format, values...);
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
