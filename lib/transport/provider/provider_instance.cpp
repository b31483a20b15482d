// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/provider/provider_instance.h"

#include <cstddef>
#include <mutex>
#include <vector>

namespace cudaq::realtime::detail {

provider_instance::ring_memory::~ring_memory() {
  if (memory != nullptr)
    cudaq_ringbuffer_destroy(memory);
}

status_or_reason provider_instance::allocate(std::uint32_t num_slots, std::uint32_t slot_size, bool pinned,
                                             std::uint32_t alignment) {
  constexpr std::uint32_t kLeast = 64; // the library's

  cudaq_ringbuffer_options_t wanted;
  cudaq_ringbuffer_options_init(&wanted, sizeof(wanted));
  wanted.memory_kind = pinned ? CUDAQ_MEMORY_MAPPED : CUDAQ_MEMORY_HOST;
  wanted.num_slots = num_slots + (alignment - kLeast + slot_size - 1) / slot_size; // room to move the first slot
  wanted.slot_size = slot_size_ = slot_size;
  num_slots_ = num_slots;
  const cudaq_status_t status = cudaq_ringbuffer_create(&wanted, &memory_.memory, &memory_.ring);
  if (status == CUDAQ_OK) {
    cudaq_ringbuffer_t &ring = memory_.ring;
    const std::uintptr_t shift = -reinterpret_cast<std::uintptr_t>(ring.rx_data_host) & (alignment - 1);
    ring.rx_data_host += shift;
    if (ring.rx_data != nullptr)
      ring.rx_data += shift;
    return {};
  }
  return make_reason(status, "%s--num-slots %u, --slot-size %u: %s", pinned ? "--pinned-rings, " : "", num_slots,
                     slot_size, cudaq_last_error_message());
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
  void add(provider_instance *provider) {
    const std::lock_guard<std::mutex> lock(mutex_);
    instances_.push_back(provider);
  }
  void remove(provider_instance *provider) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase(instances_, provider);
  }
  bool visit(const char *endpoint, const std::function<void(const provider_instance &)> &look) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const provider_instance *const provider : instances_)
      if (provider->endpoint() == endpoint) {
        look(*provider);
        return true;
      }
    return false;
  }

private:
  std::mutex mutex_;
  std::vector<provider_instance *> instances_;
};

/// Runs the body of an entry for a handle that is not NULL.
template <class Body>
cudaq_status_t entry(const char *function, cudaq_realtime_bridge_handle_t handle, Body &&body) {
  return guarded(function, [&]() -> status_or_reason {
    if (handle == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "handle is NULL");
    return body(*static_cast<provider_instance *>(handle));
  });
}

cudaq_status_t destroy(cudaq_realtime_bridge_handle_t handle) {
  return entry("destroy", handle, [](provider_instance &provider) -> status_or_reason {
    if (status_or_reason refused = provider.close())
      return refused;
    instance_list::get().remove(&provider);
    const std::unique_ptr<provider_instance> last(&provider);
    return {};
  });
}

cudaq_status_t get_transport_context(cudaq_realtime_bridge_handle_t handle, cudaq_realtime_transport_context_t type,
                                     void *out) {
  return entry("get_transport_context", handle, [&](provider_instance &provider) -> status_or_reason {
    if (out == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "out is NULL");
    if (type != (provider.unified() ? UNIFIED : RING_BUFFER))
      return make_reason(CUDAQ_ERR_UNSUPPORTED, "context_type %d: this instance has the shape %s; --unified chooses",
                         static_cast<int>(type), provider.unified() ? "unified (1)" : "ring (0)");
    if (provider.unified())
      *static_cast<cudaq_unified_dispatch_ctx_t *>(out) = {nullptr, nullptr};
    else
      std::memcpy(out, &provider.ring(), sizeof(provider.ring()));
    return {};
  });
}

cudaq_status_t connect(cudaq_realtime_bridge_handle_t handle) {
  return entry("connect", handle, [](provider_instance &provider) { return provider.connect(); });
}

cudaq_status_t launch(cudaq_realtime_bridge_handle_t handle) {
  return entry("launch", handle, [](provider_instance &provider) { return provider.launch(); });
}

cudaq_status_t disconnect(cudaq_realtime_bridge_handle_t handle) {
  return entry("disconnect", handle, [](provider_instance &provider) { return provider.disconnect(); });
}

cudaq_status_t get_cpu_dataplane(cudaq_realtime_bridge_handle_t handle, cudaq_cpu_dataplane_t *out) {
  return entry("get_cpu_dataplane", handle, [&](provider_instance &provider) -> status_or_reason {
    if (out == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "out is NULL");
    if (!provider.unified())
      return make_reason(CUDAQ_ERR_UNSUPPORTED, "this instance has the shape ring; --unified makes a dataplane");
    *out = provider.dataplane();
    return {};
  });
}

cudaq_status_t get_endpoint_info(cudaq_realtime_bridge_handle_t handle, char *buffer, std::size_t length) {
  return entry("get_endpoint_info", handle, [&](provider_instance &provider) -> status_or_reason {
    const std::string &line = provider.endpoint();
    if (buffer == nullptr || length <= line.size())
      return make_reason(CUDAQ_ERR_INVALID_ARG, "length %zu: the line needs a buffer of %zu bytes", length,
                         line.size() + 1);
    std::memcpy(buffer, line.c_str(), line.size() + 1);
    return {};
  });
}

cudaq_status_t get_ring_geometry(cudaq_realtime_bridge_handle_t handle, std::uint32_t *num_slots,
                                 std::uint32_t *slot_size) {
  return entry("get_ring_geometry", handle, [&](provider_instance &provider) -> status_or_reason {
    if (num_slots == nullptr || slot_size == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "an out pointer is NULL");
    *num_slots = provider.num_slots();
    *slot_size = provider.slot_size();
    return {};
  });
}

} // namespace

cudaq_realtime_bridge_interface_t provider_table(cudaq_status_t (*create)(cudaq_realtime_bridge_handle_t *, int,
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

void publish_instance(std::unique_ptr<provider_instance> made, cudaq_realtime_bridge_handle_t *handle) {
  instance_list::get().add(made.get());
  *handle = made.release();
}

status_or_reason visit_instance(const char *endpoint, const std::function<void(const provider_instance &)> &look) {
  if (!instance_list::get().visit(endpoint, look))
    return make_reason(CUDAQ_ERR_INVALID_ARG, "endpoint '%.100s': no instance has this line", endpoint);
  return {};
}

} // namespace cudaq::realtime::detail
