// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/bridge/provider_library.h"

#include "lib/base/library_file.h"

#include <cstddef>
#include <cstring>
#include <dlfcn.h>

namespace cudaq::realtime::detail {
namespace {

using table_t = cudaq_realtime_bridge_interface_t;

/// The bytes of a table that a version has: a provider of version 1 may be compiled with a header whose struct ends
/// there.
std::size_t bytes_of_version(int version) {
  switch (version) {
  case 1:
    return offsetof(table_t, get_cpu_dataplane);
  case 2:
    return offsetof(table_t, set_function_table);
  default:
    return sizeof(table_t);
  }
}

std::string missing_entries(const table_t &t) {
  std::string missing;
  const auto require = [&](bool present, const char *name) {
    if (!present)
      missing += (missing.empty() ? "" : ", ") + std::string(name);
  };
  require(t.create != nullptr, "create");
  require(t.destroy != nullptr, "destroy");
  require(t.get_transport_context != nullptr, "get_transport_context");
  require(t.connect != nullptr, "connect");
  require(t.launch != nullptr, "launch");
  require(t.disconnect != nullptr, "disconnect");
  return missing;
}

/// Of a provider that only some builds have.
const char *hint_of(const std::string &name) {
  return name.find("libcudaq-realtime-bridge-cpu-roce") == std::string::npos
             ? ""
             : "; this provider is only built where libibverbs-dev is installed, and needs libibverbs.so.1";
}

} // namespace

std::string short_name(const std::string &library) {
  constexpr std::size_t kMax = 160;
  return library.size() <= kMax ? library : "..." + library.substr(library.size() - kMax);
}

expected<> open_library(const std::string &name, void *&out) {
  const auto opened = check_and_load_library(name);
  if (opened.failed())
    return make_reason(CUDAQ_ERR_INTERNAL, "%s cannot be loaded: %s%s", short_name(name).c_str(), opened.text().c_str(),
                       hint_of(name));
  out = *opened;
  return {};
}

expected<> provider_library::table(const std::string &name, const provider_table *&out) {
  // dlsym waits for the dynamic linker's lock: its owner may be in a library's constructor, and wait for the mutex.
  const auto getter =
      reinterpret_cast<cudaq_realtime_get_bridge_interface_fn_t>(dlsym(handle_, CUDAQ_REALTIME_BRIDGE_GETTER));
  const auto error_getter =
      reinterpret_cast<cudaq_realtime_get_bridge_error_fn_t>(dlsym(handle_, CUDAQ_REALTIME_BRIDGE_ERROR_GETTER));
  const std::lock_guard lock(mutex_);
  if (!complete_) {
    if (expected<> result = read(name, getter); result.failed())
      return result;
    table_.error_text = error_getter;
    complete_ = true;
  }
  out = &table_;
  return {};
}

expected<> provider_library::read(const std::string &name, cudaq_realtime_get_bridge_interface_fn_t getter) {
  if (getter == nullptr)
    return make_reason(CUDAQ_ERR_INTERNAL,
                       "%s exports no function " CUDAQ_REALTIME_BRIDGE_GETTER ": it is no provider of a transport",
                       name.c_str());
  const table_t *given = nullptr;
  if (expected<> result = without_exceptions(name, CUDAQ_REALTIME_BRIDGE_GETTER,
                                             [&]() -> expected<> {
                                               given = getter();
                                               return {};
                                             });
      result.failed())
    return result;
  if (given == nullptr)
    return make_reason(CUDAQ_ERR_INTERNAL, "provider %s: " CUDAQ_REALTIME_BRIDGE_GETTER " returned NULL", name.c_str());
  const int version = given->version;
  if (version < 1 || version > CUDAQ_REALTIME_BRIDGE_INTERFACE_VERSION)
    return make_reason(CUDAQ_ERR_INTERNAL, "provider %s: the version of its table is %d, allowed: 1 to %d",
                       name.c_str(), version, CUDAQ_REALTIME_BRIDGE_INTERFACE_VERSION);
  table_ = {};
  std::memcpy(&table_.entries, given, bytes_of_version(version));
  const std::string missing = missing_entries(table_.entries);
  if (!missing.empty())
    return make_reason(CUDAQ_ERR_INTERNAL, "provider %s: its table has version %d, but these entries are NULL: %s",
                       name.c_str(), version, missing.c_str());
  return {};
}

} // namespace cudaq::realtime::detail
