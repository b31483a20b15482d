// SPDX-License-Identifier: Apache-2.0
// A provider's shared library: how it is loaded, and what is checked of its table.
#pragma once

#include "lib/base/callback.h"
#include "lib/base/error_text.h"

#include "cudaq/realtime/daemon/bridge/bridge_types.h"

#include <mutex>
#include <string>

namespace cudaq::realtime::detail {

/// What the loader calls of a provider. Entries that the provider's version does not have are NULL.
struct provider_table {
  cudaq_realtime_bridge_interface_t entries{};
  cudaq_realtime_get_bridge_error_fn_t error_text = nullptr; ///< may be NULL
};

/// One library that the dynamic linker has loaded. It is never unloaded: the provider's threads, its thread-local
/// destructors, and the functions and ring memory that it has given to a dispatcher may be in use at any time until the
/// process ends.
class provider_library {
public:
  /// `handle`: from dlopen.
  explicit provider_library(void *handle) : handle_(handle) {}
  provider_library(const provider_library &) = delete;
  provider_library &operator=(const provider_library &) = delete;

  void *handle() const { return handle_; }

  /// Gets the table, checks it and copies it: later changes of the provider's struct have no effect. The getter is
  /// called until it has succeeded once, by one thread at a time; the others wait. `name` is for the texts. *out is
  /// valid as long as this object.
  expected<> table(const std::string &name, const provider_table *&out);

private:
  expected<> read(const std::string &name, cudaq_realtime_get_bridge_interface_fn_t getter);

  void *const handle_;
  std::mutex mutex_; ///< held while the getter runs
  bool complete_ = false;
  provider_table table_;
};

/// Opens a library by the rules of dlopen. `name` is a path if it has a slash, else a file name that the dynamic linker
/// searches for.
expected<> open_library(const std::string &name, void *&out);

/// The name of a library for a text: at most its last 160 characters.
std::string short_name(const std::string &library);

/// Calls a function of a provider. Returns its reason if it throws.
template <class Function>
expected<> without_exceptions(const std::string &name, const char *entry, Function &&function) {
  try {
    return must_return(function, name.c_str(), entry);
  } catch (const std::exception &e) {
    return make_reason(CUDAQ_ERR_INTERNAL, "provider %s: %s threw an exception: %s", name.c_str(), entry, e.what());
  } catch (...) {
    return make_reason(CUDAQ_ERR_INTERNAL, "provider %s: %s threw an exception that is not a std::exception",
                       name.c_str(), entry);
  }
}

} // namespace cudaq::realtime::detail
