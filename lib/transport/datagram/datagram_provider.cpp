// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/datagram_provider.h"

#include <cstddef>
#include <cstring>
#include <mutex>

namespace cudaq::realtime::detail {

datagram_provider::ring_memory::~ring_memory() {
  if (memory != nullptr)
    cudaq_ringbuffer_destroy(memory);
}

status_or_reason datagram_provider::open(const datagram_options &options, std::unique_ptr<datagram_wire> wire) {
  if (status_or_reason refused = allocate(options))
    return refused;
  exchange = std::make_unique<datagram_exchange>(options, std::move(wire), memory.ring);
  if (status_or_reason refused = exchange->open())
    return refused;
  endpoint = "transport=" + options.provider + " port=" + std::to_string(exchange->socket().port()) +
             " address=" + options.bind_address + " frame_size=" + std::to_string(options.slot_size);
  if (options.unified)
    dataplane = std::make_unique<datagram_dataplane>(*exchange);
  else
    pump = std::make_unique<datagram_ring>(*exchange);
  return {};
}

status_or_reason datagram_provider::allocate(const datagram_options &options) {
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

namespace {

/// All instances of the process. It is process-wide because a program that uses the loader has no handle of the
/// provider: it knows an instance by its endpoint line. Never destroyed: instances may live until the process ends.
class instance_list {
public:
  static instance_list &get() {
    static instance_list *const list = new instance_list;
    return *list;
  }
  void add(datagram_provider *provider) {
    const std::lock_guard<std::mutex> lock(mutex_);
    instances_.push_back(provider);
  }
  void remove(datagram_provider *provider) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase(instances_, provider);
  }
  bool visit(const char *endpoint, const std::function<void(const datagram_provider &)> &look) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const datagram_provider *const provider : instances_)
      if (provider->endpoint == endpoint) {
        look(*provider);
        return true;
      }
    return false;
  }

private:
  std::mutex mutex_;
  std::vector<datagram_provider *> instances_;
};

/// Runs the body of an entry for a handle that is not NULL.
template <class Body>
cudaq_status_t entry(const char *function, cudaq_realtime_bridge_handle_t handle, Body &&body) {
  return guarded(function, [&]() -> status_or_reason {
    if (handle == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "handle is NULL");
    return body(*static_cast<datagram_provider *>(handle));
  });
}

cudaq_rx_status_t rx_poll(void *ctx, std::uint32_t *out_slot) {
  return static_cast<datagram_dataplane *>(ctx)->poll(*out_slot);
}
cudaq_status_t tx_publish(void *ctx, std::uint32_t slot) {
  return guarded_brief("tx_publish", [&] { return static_cast<datagram_dataplane *>(ctx)->publish(slot); });
}

cudaq_status_t destroy(cudaq_realtime_bridge_handle_t handle) {
  return entry("destroy", handle, [](datagram_provider &provider) -> status_or_reason {
    // The last answers are sent; those that find no room end here.
    if (provider.pump) {
      if (status_or_reason refused = provider.pump->end_thread())
        return refused;
      provider.pump->disconnect();
    }
    if (provider.dataplane)
      provider.dataplane->disconnect();
    instance_list::get().remove(&provider);
    const std::unique_ptr<datagram_provider> last(&provider);
    return {};
  });
}

cudaq_status_t get_transport_context(cudaq_realtime_bridge_handle_t handle, cudaq_realtime_transport_context_t type,
                                     void *out) {
  return entry("get_transport_context", handle, [&](datagram_provider &provider) -> status_or_reason {
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
  return entry("connect", handle, [](datagram_provider &) { return status_or_reason{}; });
}

cudaq_status_t launch(cudaq_realtime_bridge_handle_t handle) {
  return entry("launch", handle, [](datagram_provider &provider) -> status_or_reason {
    if (provider.pump)
      return provider.pump->launch();
    provider.dataplane->launch();
    return {};
  });
}

cudaq_status_t disconnect(cudaq_realtime_bridge_handle_t handle) {
  return entry("disconnect", handle, [](datagram_provider &provider) {
    return provider.pump ? provider.pump->disconnect() : provider.dataplane->disconnect();
  });
}

cudaq_status_t get_cpu_dataplane(cudaq_realtime_bridge_handle_t handle, cudaq_cpu_dataplane_t *out) {
  return entry("get_cpu_dataplane", handle, [&](datagram_provider &provider) -> status_or_reason {
    if (out == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "out is NULL");
    if (!provider.dataplane)
      return make_reason(CUDAQ_ERR_UNSUPPORTED, "this instance has the shape ring; --unified makes a dataplane");
    *out = {provider.dataplane.get(), provider.memory.ring, rx_poll, tx_publish};
    return {};
  });
}

cudaq_status_t get_endpoint_info(cudaq_realtime_bridge_handle_t handle, char *buffer, std::size_t length) {
  return entry("get_endpoint_info", handle, [&](datagram_provider &provider) -> status_or_reason {
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
  return entry("get_ring_geometry", handle, [&](datagram_provider &provider) -> status_or_reason {
    if (num_slots == nullptr || slot_size == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "an out pointer is NULL");
    *num_slots = provider.exchange->options().num_slots;
    *slot_size = provider.exchange->options().slot_size;
    return {};
  });
}

} // namespace

cudaq_realtime_bridge_interface_t datagram_table(cudaq_status_t (*create)(cudaq_realtime_bridge_handle_t *, int,
                                                                          char **)) {
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

void publish_instance(std::unique_ptr<datagram_provider> made, cudaq_realtime_bridge_handle_t *handle) {
  instance_list::get().add(made.get());
  *handle = made.release();
}

status_or_reason visit_instance(const char *endpoint, const std::function<void(const datagram_provider &)> &look) {
  if (!instance_list::get().visit(endpoint, look))
    return make_reason(CUDAQ_ERR_INVALID_ARG, "endpoint '%.100s': no instance has this line", endpoint);
  return {};
}

cudaq_status_t get_request_statistics(const char *endpoint, cudaq_udp_statistics_t *out) {
  return read_statistics(
      "cudaq_udp_get_statistics", endpoint, out,
      [](const datagram_provider &provider, cudaq_udp_statistics_t &all) { provider.exchange->counters().read(all); });
}

} // namespace cudaq::realtime::detail
