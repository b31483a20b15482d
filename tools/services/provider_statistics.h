// SPDX-License-Identifier: Apache-2.0
// The statistics that a provider exports beside its table, each kind by a function of its own name (udp_provider.h,
// roce_provider.h, cpu_roce_provider.h).
#pragma once

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"

#include <dlfcn.h>
#include <optional>
#include <string>

namespace cudaq::realtime::tools {

class provider_statistics {
public:
  /// `library`: of a provider that is loaded already.
  explicit provider_statistics(const std::string &library) : handle_(dlopen(library.c_str(), RTLD_NOW | RTLD_NOLOAD)) {}
  ~provider_statistics() {
    if (handle_ != nullptr)
      dlclose(handle_);
  }
  provider_statistics(const provider_statistics &) = delete;
  provider_statistics &operator=(const provider_statistics &) = delete;

  /// Nothing if the library does not export `function`, or if it does not know an instance with this endpoint line.
  template <class Statistics>
  [[nodiscard]] std::optional<Statistics> read(const char *function, const std::string &endpoint) const {
    using reader = cudaq_status_t (*)(const char *, Statistics *);
    const auto read = handle_ == nullptr ? nullptr : reinterpret_cast<reader>(dlsym(handle_, function));
    Statistics all{};
    all.struct_size = sizeof all;
    if (read == nullptr || read(endpoint.c_str(), &all) != CUDAQ_OK)
      return std::nullopt;
    return all;
  }

private:
  void *const handle_;
};

} // namespace cudaq::realtime::tools
