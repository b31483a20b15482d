// SPDX-License-Identifier: Apache-2.0
// The entries of a provider's table as functions of its own class of instances. Providers whose ring is in memory of
// the library take most of them from instance_entries (provider_instance.h).
#pragma once

#include "cudaq/realtime/daemon/bridge/bridge_types.h"
#include "lib/base/enum_number.h"
#include "lib/base/error_text.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>

namespace cudaq::realtime::detail {

inline expected<> missing(const char *argument) { return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", argument); }

/// Refuses a context of the shape that the instance does not have. `unified`: the shape that it has.
inline expected<> need_shape(cudaq_realtime_transport_context_t kind, bool unified) {
  if ((kind == UNIFIED) == unified)
    return {};
  return make_reason(CUDAQ_ERR_UNSUPPORTED, "context_type %d: this instance has the shape %s; --unified chooses",
                     static_cast<int>(kind), unified ? "unified (1)" : "ring (0)");
}

/// The same for get_cpu_dataplane.
inline expected<> need_dataplane(bool unified) {
  if (unified)
    return {};
  return make_reason(CUDAQ_ERR_UNSUPPORTED, "this instance has the shape ring; --unified makes a dataplane");
}

/// Writes the context of a unified shape whose loop is the host's, with get_cpu_dataplane.
inline void write_host_driven(void *out) {
  const cudaq_unified_dispatch_ctx_t host_driven{};
  std::memcpy(out, &host_driven, sizeof(host_driven));
}

/// `Provider` has no state:
///   instance                                 the class that a handle points to
///   kPrefix                                  before the names of entries in texts: "shm "
///   create(argc, argv, unique_ptr &)         makes an instance that is ready
///   close(instance &)                        before its destruction; a reason prevents it
///   context(instance &, kind, void *)        the kind is one of the two, the pointer not NULL
///   dataplane(instance &, cudaq_cpu_dataplane_t &)
///   connect(instance &), launch(instance &), disconnect(instance &)
///   endpoint(instance &), slots(instance &), slot_bytes(instance &)
template <class Provider>
class provider_entries {
public:
  static cudaq_realtime_bridge_interface_t table() {
    constexpr int kVersion = 2; // without set_function_table; loaders of version 2 refuse a higher number
    return {kVersion, create,     destroy,           get_transport_context, connect,
            launch,   disconnect, get_cpu_dataplane, get_endpoint_info,     get_ring_geometry,
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
    return guarded(name.data(), [&]() -> expected<> {
      if (handle == nullptr)
        return missing("handle");
      return body(*static_cast<instance *>(handle));
    });
  }

  static cudaq_status_t create(handle_type *handle, int argc, char **argv) {
    static constexpr auto kName = named("create");
    return guarded(kName.data(), [&]() -> expected<> {
      if (handle == nullptr)
        return missing("handle");
      std::unique_ptr<instance> made;
      if (expected<> result = Provider::create(argc, argv, made); result.failed())
        return result;
      *handle = made.release();
      return {};
    });
  }

  static cudaq_status_t destroy(handle_type handle) {
    static constexpr auto kName = named("destroy");
    return with(kName, handle, [](instance &i) -> expected<> {
      if (expected<> result = Provider::close(i); result.failed())
        return result;
      delete &i;
      return {};
    });
  }

  static cudaq_status_t get_transport_context(handle_type handle, cudaq_realtime_transport_context_t kind, void *out) {
    static constexpr auto kName = named("get_transport_context");
    return with(kName, handle, [&](instance &i) -> expected<> {
      if (out == nullptr)
        return missing("out");
      const int number = number_in(kind);
      if (number != RING_BUFFER && number != UNIFIED)
        return make_reason(CUDAQ_ERR_INVALID_ARG, "context_type is %d, allowed: 0 (RING_BUFFER), 1 (UNIFIED)", number);
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
    return with(kName, handle, [&](instance &i) -> expected<> {
      if (out == nullptr)
        return missing("out");
      return Provider::dataplane(i, *out);
    });
  }

  static cudaq_status_t get_endpoint_info(handle_type handle, char *buffer, std::size_t length) {
    static constexpr auto kName = named("get_endpoint_info");
    return with(kName, handle, [&](instance &i) -> expected<> {
      if (buffer == nullptr)
        return missing("buffer");
      const std::string &line = Provider::endpoint(i);
      if (length <= line.size())
        return make_reason(CUDAQ_ERR_INVALID_ARG, "length is %zu: the line needs a buffer of %zu bytes", length,
                           line.size() + 1);
      std::memcpy(buffer, line.c_str(), line.size() + 1);
      return {};
    });
  }

  static cudaq_status_t get_ring_geometry(handle_type handle, std::uint32_t *num_slots, std::uint32_t *slot_size) {
    static constexpr auto kName = named("get_ring_geometry");
    return with(kName, handle, [&](instance &i) -> expected<> {
      if (num_slots == nullptr || slot_size == nullptr)
        return missing(num_slots == nullptr ? "num_slots" : "slot_size");
      *num_slots = Provider::slots(i);
      *slot_size = Provider::slot_bytes(i);
      return {};
    });
  }
};

} // namespace cudaq::realtime::detail
