// SPDX-License-Identifier: Apache-2.0
// The provider's library, loaded as a program loads it that does not use the loader.
#pragma once

#include "cudaq/realtime/daemon/bridge/bridge_types.h"
#include "cudaq/realtime/daemon/bridge/cpu_roce_provider.h"
#include "cudaq/realtime/daemon/bridge/roce_provider.h"
#include "cudaq/realtime/daemon/bridge/udp_provider.h"

#include <cstddef>
#include <dlfcn.h>
#include <string>
#include <vector>

namespace cudaq::realtime::test {

/// Stays loaded until the process ends, as with the loader.
class provider_library {
public:
  explicit provider_library(const char *path) : library_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) {
      error = dlerror();
      return;
    }
    table = function<cudaq_realtime_get_bridge_interface_fn_t>(CUDAQ_REALTIME_BRIDGE_GETTER)();
    statistics_ = function<cudaq_udp_get_statistics_fn_t>("cudaq_udp_get_statistics");
    packets_ = function<cudaq_roce_get_statistics_fn_t>("cudaq_roce_get_statistics");
    messages_ = function<cudaq_cpu_roce_get_statistics_fn_t>("cudaq_cpu_roce_get_statistics");
    error_text_ = function<const char *(*)()>("cudaq_realtime_get_bridge_error");
  }

  cudaq_status_t create(std::vector<std::string> words, cudaq_realtime_bridge_handle_t &handle) const {
    std::vector<char *> argv;
    for (std::string &word : words)
      argv.push_back(word.data());
    return table->create(&handle, static_cast<int>(argv.size()), argv.data());
  }
  std::string endpoint(cudaq_realtime_bridge_handle_t handle) const {
    char line[256] = "";
    table->get_endpoint_info(handle, line, sizeof(line));
    return line;
  }
  std::string error_text() const { return error_text_(); }
  cudaq_status_t statistics(const std::string &of, cudaq_udp_statistics_t &out) const {
    out = {};
    out.struct_size = sizeof(out);
    return statistics_(of.c_str(), &out);
  }
  bool counts_requests() const { return statistics_ != nullptr; }
  bool counts_messages() const { return messages_ != nullptr; }
  cudaq_status_t messages(const std::string &of, cudaq_cpu_roce_statistics_t &out) const {
    out = {};
    out.struct_size = sizeof(out);
    return messages_(of.c_str(), &out);
  }
  bool counts_packets() const { return packets_ != nullptr; }
  cudaq_status_t packets(const std::string &of, cudaq_roce_statistics_t &out) const {
    out = {};
    out.struct_size = sizeof(out);
    return packets_(of.c_str(), &out);
  }

  std::string error; ///< why the library was not loaded
  const cudaq_realtime_bridge_interface_t *table = nullptr;

private:
  template <class Function>
  Function function(const char *name) const {
    return reinterpret_cast<Function>(dlsym(library_, name));
  }

  void *library_;
  cudaq_udp_get_statistics_fn_t statistics_ = nullptr;    ///< of providers over datagrams
  cudaq_roce_get_statistics_fn_t packets_ = nullptr;      ///< of the roce provider
  cudaq_cpu_roce_get_statistics_fn_t messages_ = nullptr; ///< of the cpu_roce provider
  const char *(*error_text_)() = nullptr;
};

/// The value of a key of an endpoint line, or "".
inline std::string value_of(const std::string &line, const std::string &key) {
  const std::size_t at = (" " + line).find(" " + key + "=");
  if (at == std::string::npos)
    return "";
  const std::size_t begin = at + key.size() + 1;
  return line.substr(begin, line.find_first_of(" \n", begin) - begin);
}

} // namespace cudaq::realtime::test
