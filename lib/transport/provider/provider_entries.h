// SPDX-License-Identifier: Apache-2.0
// The entries of a provider's table as functions of its own class of instances. Providers with a ring or a dataplane of
// the usual kind derive from provider_instance instead.
#pragma once

#include "cudaq/realtime/daemon/bridge/bridge_interface.h"
#include "lib/base/error_text.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>

namespace cudaq::realtime::detail {

inline status_or_reason missing(const char *argument) {
  return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", argument);
}

inline status_or_reason unknown_context(cudaq_realtime_transport_context_t kind) {
  return make_reason(CUDAQ_ERR_INVALID_ARG, "context_type is %d: accepted are RING_BUFFER (0) and UNIFIED (1)",
                     static_cast<int>(kind));
}

/// `Provider` has no state:
///   instance                                 the class that a handle points to
///   kPrefix                                  before the names of entries in texts: "shm "
///   create(argc, argv, unique_ptr &)         makes an instance that is ready
///   close(instance &)                        before its destruction; a reason prevents it
///   context(instance &, kind, void *)        the pointer is not NULL
///   dataplane(instance &, out)               `out` may be NULL
///   connect(instance &), launch(instance &), disconnect(instance &)
///   endpoint(instance &), slots(instance &), slot_bytes(instance &)
template <class Provider>
class provider_entries {
public:
  static cudaq_realtime_bridge_interface_t table() {
    return {CUDAQ_REALTIME_BRIDGE_INTERFACE_VERSION,
            create,
            destroy,
            get_transport_context,
            connect,
            launch,
            disconnect,
            get_cpu_dataplane,
            get_endpoint_info,
            get_ring_geometry,
            nullptr};
  }

private:
  using instance = typename Provider::instance;
  using handle_type = cudaq_realtime_bridge_handle_t;

  template <std::size_t Size>
  static constexpr auto named(const char (&entry)[Size]) {
    std::array<char, sizeof(Provider::kPrefix) - 1 + Size> name{};
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < sizeof(Provider::kPrefix); ++i)
      name[at++] = Provider::kPrefix[i];
    for (const char letter : entry)
      name[at++] = letter;
    return name;
  }

  /// Runs the body of an entry for a handle that is not NULL.
  template <class Name, class Body>
  static cudaq_status_t with(const Name &name, handle_type handle, Body &&body) {
    return guarded(name.data(), [&]() -> status_or_reason {
      if (handle == nullptr)
        return missing("handle");
      return body(*static_cast<instance *>(handle));
    });
  }

  static cudaq_status_t create(handle_type *handle, int argc, char **argv) {
    static constexpr auto kName = named("create");
    return guarded(kName.data(), [&]() -> status_or_reason {
      if (handle == nullptr)
        return missing("handle");
      std::unique_ptr<instance> made;
      if (status_or_reason refused = Provider::create(argc, argv, made))
        return refused;
      *handle = made.release();
      return {};
    });
  }

  static cudaq_status_t destroy(handle_type handle) {
    static constexpr auto kName = named("destroy");
    return with(kName, handle, [](instance &i) -> status_or_reason {
      if (status_or_reason refused = Provider::close(i))
        return refused;
      delete &i;
      return {};
    });
  }

  static cudaq_status_t get_transport_context(handle_type handle, cudaq_realtime_transport_context_t kind, void *out) {
    static constexpr auto kName = named("get_transport_context");
    return with(kName, handle, [&](instance &i) -> status_or_reason {
      if (out == nullptr)
        return missing("out");
      return Provider::context(i, kind, out);
    });
  }

  static cudaq_status_t connect(handle_type handle) {
    static constexpr auto kName = named("connect");
    return with(kName, handle, [](instance &i) { return Provider::connect(i); });
  }

  static cudaq_status_t launch(handle_type handle) {
    static constexpr auto kName = named("launch");
    return with(kName, handle, [](instance &i) { return Provider::launch(i); });
  }

  static cudaq_status_t disconnect(handle_type handle) {
    static constexpr auto kName = named("disconnect");
    return with(kName, handle, [](instance &i) { return Provider::disconnect(i); });
  }

  static cudaq_status_t get_cpu_dataplane(handle_type handle, cudaq_cpu_dataplane_t *out) {
    static constexpr auto kName = named("get_cpu_dataplane");
    return with(kName, handle, [&](instance &i) { return Provider::dataplane(i, out); });
  }

  static cudaq_status_t get_endpoint_info(handle_type handle, char *buffer, std::size_t length) {
    static constexpr auto kName = named("get_endpoint_info");
    return with(kName, handle, [&](instance &i) -> status_or_reason {
      if (buffer == nullptr)
        return missing("buffer");
      const std::string &line = Provider::endpoint(i);
      if (length <= line.size())
        return make_reason(CUDAQ_ERR_INVALID_ARG, "length is %zu: the line needs %zu", length, line.size() + 1);
      std::memcpy(buffer, line.c_str(), line.size() + 1);
      return {};
    });
  }

  static cudaq_status_t get_ring_geometry(handle_type handle, std::uint32_t *num_slots, std::uint32_t *slot_size) {
    static constexpr auto kName = named("get_ring_geometry");
    return with(kName, handle, [&](instance &i) -> status_or_reason {
      if (num_slots == nullptr || slot_size == nullptr)
        return missing(num_slots == nullptr ? "num_slots" : "slot_size");
      *num_slots = Provider::slots(i);
      *slot_size = Provider::slot_bytes(i);
      return {};
    });
  }
};

} // namespace cudaq::realtime::detail
