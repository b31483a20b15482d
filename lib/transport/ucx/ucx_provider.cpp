// SPDX-License-Identifier: Apache-2.0
// The table that the loader calls. A handle is a ucx_node.
#include "lib/transport/ucx/ucx_node.h"

#include <cstring>

namespace {

using namespace cudaq::realtime::detail;

status_or_reason missing(const char *argument) { return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", argument); }

template <class Body>
cudaq_status_t with_node(const char *function, void *handle, Body &&body) {
  return guarded(function, [&]() -> status_or_reason {
    if (handle == nullptr)
      return missing("handle");
    return body(*static_cast<ucx_node *>(handle));
  });
}

cudaq_status_t create(cudaq_realtime_bridge_handle_t *handle, int argc, char **argv) {
  return guarded("ucx create", [&]() -> status_or_reason {
    if (handle == nullptr)
      return missing("handle");
    ucx_options options;
    if (status_or_reason found = read_ucx_options(argc, argv, options))
      return found;
    auto node = std::make_unique<ucx_node>();
    if (status_or_reason found = node->open(options))
      return found;
    *handle = node.release();
    return {};
  });
}

cudaq_status_t destroy(cudaq_realtime_bridge_handle_t handle) {
  return with_node("ucx destroy", handle, [](ucx_node &node) -> status_or_reason {
    delete &node;
    return {};
  });
}

cudaq_status_t get_transport_context(cudaq_realtime_bridge_handle_t handle, cudaq_realtime_transport_context_t kind,
                                     void *out) {
  return with_node("ucx get_transport_context", handle, [&](ucx_node &) -> status_or_reason {
    if (out == nullptr)
      return missing("out");
    if (kind == RING_BUFFER)
      return {CUDAQ_ERR_UNSUPPORTED, "context_type is RING_BUFFER: the provider has the unified shape only"};
    if (kind != UNIFIED)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "context_type is %d: accepted are RING_BUFFER (0) and UNIFIED (1)",
                         static_cast<int>(kind));
    const cudaq_unified_dispatch_ctx_t host_driven{};
    std::memcpy(out, &host_driven, sizeof(host_driven));
    return {};
  });
}

// Routers come at any time after create: there is nothing to wait for.
cudaq_status_t connect_provider(cudaq_realtime_bridge_handle_t handle) {
  return with_node("ucx connect", handle, [](ucx_node &) { return status_or_reason{}; });
}

cudaq_status_t launch(cudaq_realtime_bridge_handle_t handle) {
  return with_node("ucx launch", handle, [](ucx_node &node) {
    node.launch();
    return status_or_reason{};
  });
}

cudaq_status_t disconnect(cudaq_realtime_bridge_handle_t handle) {
  return with_node("ucx disconnect", handle, [](ucx_node &node) {
    node.disconnect();
    return status_or_reason{};
  });
}

cudaq_status_t get_cpu_dataplane(cudaq_realtime_bridge_handle_t handle, cudaq_cpu_dataplane_t *out) {
  return with_node("ucx get_cpu_dataplane", handle, [&](ucx_node &node) -> status_or_reason {
    if (out == nullptr)
      return missing("out");
    *out = node.dataplane();
    return {};
  });
}

cudaq_status_t get_endpoint_info(cudaq_realtime_bridge_handle_t handle, char *buffer, size_t length) {
  return with_node("ucx get_endpoint_info", handle, [&](ucx_node &node) -> status_or_reason {
    if (buffer == nullptr)
      return missing("buffer");
    const std::string &line = node.endpoint();
    if (length <= line.size())
      return make_reason(CUDAQ_ERR_INVALID_ARG, "length is %zu: the line needs %zu", length, line.size() + 1);
    std::memcpy(buffer, line.c_str(), line.size() + 1);
    return {};
  });
}

cudaq_status_t get_ring_geometry(cudaq_realtime_bridge_handle_t handle, uint32_t *num_slots, uint32_t *slot_size) {
  return with_node("ucx get_ring_geometry", handle, [&](ucx_node &node) -> status_or_reason {
    if (num_slots == nullptr || slot_size == nullptr)
      return missing(num_slots == nullptr ? "num_slots" : "slot_size");
    *num_slots = node.options().num_slots;
    *slot_size = node.options().slot_size;
    return {};
  });
}

} // namespace

extern "C" {

CUDAQ_REALTIME_API cudaq_realtime_bridge_interface_t *cudaq_realtime_get_bridge_interface(void) {
  static cudaq_realtime_bridge_interface_t table = {CUDAQ_REALTIME_BRIDGE_INTERFACE_VERSION,
                                                    create,
                                                    destroy,
                                                    get_transport_context,
                                                    connect_provider,
                                                    launch,
                                                    disconnect,
                                                    get_cpu_dataplane,
                                                    get_endpoint_info,
                                                    get_ring_geometry,
                                                    nullptr};
  return &table;
}

/* The text of the last entry that failed on this thread. */
CUDAQ_REALTIME_API const char *cudaq_realtime_get_bridge_error(void) { return last_error_text(); }

} // extern "C"
