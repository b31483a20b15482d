// SPDX-License-Identifier: Apache-2.0
// The provider's table: options, memory, and the choice between the two shapes.
#include "cudaq/realtime/daemon/bridge/udp_provider.h"
#include "lib/transport/udp/udp_dataplane.h"
#include "lib/transport/udp/udp_ring.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <string>

namespace cudaq::realtime::detail {
namespace {

/// An instance. The order of the members frees the ring last.
class udp_provider {
public:
  status_or_reason open(int argc, char **argv) {
    udp_options options;
    if (status_or_reason refused = parse_udp_options(argc, argv, options))
      return refused;
    if (status_or_reason refused = allocate(options))
      return refused;
    exchange = std::make_unique<udp_exchange>(options, memory.ring);
    if (status_or_reason refused = exchange->open())
      return refused;
    endpoint = "transport=udp port=" + std::to_string(exchange->socket().port()) + " address=" + options.bind_address +
               " frame_size=" + std::to_string(options.slot_size);
    if (options.unified)
      dataplane = std::make_unique<udp_dataplane>(*exchange);
    else
      pump = std::make_unique<udp_ring>(*exchange);
    return {};
  }

  struct ring_memory {
    ring_memory() = default;
    ring_memory(const ring_memory &) = delete;
    ring_memory &operator=(const ring_memory &) = delete;
    ~ring_memory() {
      if (memory != nullptr)
        cudaq_ringbuffer_destroy(memory);
    }
    cudaq_ringbuffer_memory_t *memory = nullptr;
    cudaq_ringbuffer_t ring{};
  } memory;
  std::string endpoint;
  std::unique_ptr<udp_exchange> exchange;
  std::unique_ptr<udp_dataplane> dataplane; ///< one of these two is set
  std::unique_ptr<udp_ring> pump;

private:
  status_or_reason allocate(const udp_options &options) {
    cudaq_ringbuffer_options_t wanted;
    cudaq_ringbuffer_options_init(&wanted, sizeof(wanted));
    wanted.memory_kind = options.pinned_rings ? CUDAQ_MEMORY_MAPPED : CUDAQ_MEMORY_HOST;
    wanted.num_slots = options.num_slots;
    wanted.slot_size = options.slot_size;
    const cudaq_status_t status = cudaq_ringbuffer_create(&wanted, &memory.memory, &memory.ring);
    if (status == CUDAQ_OK)
      return {};
    return make_reason(status, "%s--num-slots %u, --slot-size %u: %s", options.pinned_rings ? "--pinned-rings, " : "",
                       options.num_slots, options.slot_size, cudaq_last_error_message());
  }
};

/// All instances of the process. It is process-wide because a program that uses the loader has no handle of the
/// provider: it knows an instance by its endpoint line. Never destroyed: instances may live until the process ends.
class instance_list {
public:
  static instance_list &get() {
    static instance_list *const list = new instance_list;
    return *list;
  }
  void add(udp_provider *provider) {
    const std::lock_guard<std::mutex> lock(mutex_);
    instances_.push_back(provider);
  }
  void remove(udp_provider *provider) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase(instances_, provider);
  }
  bool read(const char *endpoint, cudaq_udp_statistics_t &out) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const udp_provider *const provider : instances_)
      if (provider->endpoint == endpoint) {
        provider->exchange->counters().read(out);
        return true;
      }
    return false;
  }

private:
  std::mutex mutex_;
  std::vector<udp_provider *> instances_;
};

/// Runs the body of an entry for a handle that is not NULL.
template <class Body>
cudaq_status_t entry(const char *function, cudaq_realtime_bridge_handle_t handle, Body &&body) {
  return guarded(function, [&]() -> status_or_reason {
    if (handle == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "handle is NULL");
    return body(*static_cast<udp_provider *>(handle));
  });
}

cudaq_rx_status_t rx_poll(void *ctx, std::uint32_t *out_slot) {
  return static_cast<udp_dataplane *>(ctx)->poll(*out_slot);
}
cudaq_status_t tx_publish(void *ctx, std::uint32_t slot) {
  return guarded_brief("udp tx_publish", [&] { return static_cast<udp_dataplane *>(ctx)->publish(slot); });
}

cudaq_status_t create(cudaq_realtime_bridge_handle_t *handle, int argc, char **argv) {
  return guarded("udp create", [&]() -> status_or_reason {
    if (handle == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "handle is NULL");
    auto made = std::make_unique<udp_provider>();
    if (status_or_reason refused = made->open(argc, argv))
      return refused;
    instance_list::get().add(made.get());
    *handle = made.release();
    return {};
  });
}

cudaq_status_t destroy(cudaq_realtime_bridge_handle_t handle) {
  return entry("udp destroy", handle, [](udp_provider &provider) -> status_or_reason {
    if (provider.pump)
      if (status_or_reason refused = provider.pump->disconnect())
        return refused;
    if (provider.dataplane)
      provider.dataplane->disconnect(); // sends answers of the loop's end; those that find no room end here
    instance_list::get().remove(&provider);
    const std::unique_ptr<udp_provider> last(&provider);
    return {};
  });
}

cudaq_status_t get_transport_context(cudaq_realtime_bridge_handle_t handle, cudaq_realtime_transport_context_t type,
                                     void *out) {
  return entry("udp get_transport_context", handle, [&](udp_provider &provider) -> status_or_reason {
    if (out == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "out is NULL");
    if (type != (provider.pump ? RING_BUFFER : UNIFIED))
      return make_reason(CUDAQ_ERR_UNSUPPORTED, "context_type %d: this instance has the shape %s; --unified chooses",
                         static_cast<int>(type), provider.pump ? "ring (0)" : "unified (1)");
    if (provider.pump)
      std::memcpy(out, &provider.memory.ring, sizeof(provider.memory.ring));
    else
      *static_cast<cudaq_unified_dispatch_ctx_t *>(out) = {nullptr, nullptr};
    return {};
  });
}

cudaq_status_t connect(cudaq_realtime_bridge_handle_t handle) { // peers need no connection
  return entry("udp connect", handle, [](udp_provider &) { return status_or_reason{}; });
}

cudaq_status_t launch(cudaq_realtime_bridge_handle_t handle) {
  return entry("udp launch", handle, [](udp_provider &provider) -> status_or_reason {
    if (provider.pump)
      return provider.pump->launch();
    provider.dataplane->launch();
    return {};
  });
}

cudaq_status_t disconnect(cudaq_realtime_bridge_handle_t handle) {
  return entry("udp disconnect", handle, [](udp_provider &provider) {
    return provider.pump ? provider.pump->disconnect() : provider.dataplane->disconnect();
  });
}

cudaq_status_t get_cpu_dataplane(cudaq_realtime_bridge_handle_t handle, cudaq_cpu_dataplane_t *out) {
  return entry("udp get_cpu_dataplane", handle, [&](udp_provider &provider) -> status_or_reason {
    if (out == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "out is NULL");
    if (!provider.dataplane)
      return make_reason(CUDAQ_ERR_UNSUPPORTED, "this instance has the shape ring; --unified makes a dataplane");
    *out = {provider.dataplane.get(), provider.memory.ring, rx_poll, tx_publish};
    return {};
  });
}

cudaq_status_t get_endpoint_info(cudaq_realtime_bridge_handle_t handle, char *buffer, std::size_t length) {
  return entry("udp get_endpoint_info", handle, [&](udp_provider &provider) -> status_or_reason {
    const std::string &line = provider.endpoint;
    if (buffer == nullptr || length <= line.size())
      return make_reason(CUDAQ_ERR_INVALID_ARG, "length %zu: the line needs a buffer of %zu bytes", length,
                         line.size() + 1);
    std::memcpy(buffer, line.c_str(), line.size() + 1);
    return {};
  });
}

cudaq_status_t get_ring_geometry(cudaq_realtime_bridge_handle_t handle, std::uint32_t *num_slots,
                                 std::uint32_t *slot_size) {
  return entry("udp get_ring_geometry", handle, [&](udp_provider &provider) -> status_or_reason {
    if (num_slots == nullptr || slot_size == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "an out pointer is NULL");
    *num_slots = provider.exchange->options().num_slots;
    *slot_size = provider.exchange->options().slot_size;
    return {};
  });
}

} // namespace
} // namespace cudaq::realtime::detail

extern "C" {

CUDAQ_REALTIME_API cudaq_realtime_bridge_interface_t *cudaq_realtime_get_bridge_interface(void) {
  using namespace cudaq::realtime::detail;
  static cudaq_realtime_bridge_interface_t table = {CUDAQ_REALTIME_BRIDGE_INTERFACE_VERSION,
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
  return &table;
}

cudaq_status_t cudaq_udp_get_statistics(const char *endpoint, cudaq_udp_statistics_t *out) {
  using namespace cudaq::realtime::detail;
  return guarded("cudaq_udp_get_statistics", [&]() -> status_or_reason {
    if (endpoint == nullptr || out == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", endpoint == nullptr ? "endpoint" : "out");
    const std::uint32_t size = out->struct_size;
    if (size < offsetof(cudaq_udp_statistics_t, accepted) || size > sizeof(*out))
      return make_reason(CUDAQ_ERR_INVALID_ARG, "struct_size %u: from %zu to %zu is accepted", size,
                         offsetof(cudaq_udp_statistics_t, accepted), sizeof(*out));
    cudaq_udp_statistics_t all{};
    if (!instance_list::get().read(endpoint, all))
      return make_reason(CUDAQ_ERR_INVALID_ARG, "endpoint '%.100s': no instance has this line", endpoint);
    all.struct_size = size;
    std::memcpy(out, &all, size / sizeof(std::uint64_t) * sizeof(std::uint64_t));
    return {};
  });
}

const char *cudaq_realtime_get_bridge_error(void) { return cudaq::realtime::detail::last_error_text(); }

} // extern "C"
