// SPDX-License-Identifier: Apache-2.0
// The table that the loader calls. A handle is a gpu_roce_bridge.
#include "cudaq/realtime/daemon/bridge/bridge_interface.h"
#include "lib/transport/gpu_roce/gpu_roce_bridge.h"

#include <cstring>

namespace {

using namespace cudaq::realtime::detail;

status_or_reason missing(const char *argument) { return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", argument); }

template <class Body>
cudaq_status_t with_bridge(const char *function, void *handle, Body &&body) {
  return guarded(function, [&]() -> status_or_reason {
    if (handle == nullptr)
      return missing("handle");
    return body(*static_cast<gpu_roce_bridge *>(handle));
  });
}

cudaq_status_t create(cudaq_realtime_bridge_handle_t *handle, int argc, char **argv) {
  return guarded("gpu-roce create", [&]() -> status_or_reason {
    if (handle == nullptr)
      return missing("handle");
    gpu_roce_options options;
    if (status_or_reason refused = parse_gpu_roce_options(argc, argv, options))
      return refused;
    auto bridge = std::make_unique<gpu_roce_bridge>(std::move(options));
    if (status_or_reason failed = bridge->open())
      return failed;
    *handle = bridge.release();
    return {};
  });
}

cudaq_status_t destroy(cudaq_realtime_bridge_handle_t handle) {
  return with_bridge("gpu-roce destroy", handle, [](gpu_roce_bridge &bridge) -> status_or_reason {
    if (status_or_reason failed = bridge.close())
      return failed;
    delete &bridge;
    return {};
  });
}

cudaq_status_t get_transport_context(cudaq_realtime_bridge_handle_t handle, cudaq_realtime_transport_context_t kind,
                                     void *out) {
  return with_bridge("gpu-roce get_transport_context", handle, [&](gpu_roce_bridge &bridge) -> status_or_reason {
    if (out == nullptr)
      return missing("out");
    if (kind == RING_BUFFER)
      return bridge.ring(*static_cast<cudaq_ringbuffer_t *>(out));
    if (kind == UNIFIED)
      return bridge.unified(*static_cast<cudaq_unified_dispatch_ctx_t *>(out));
    return make_reason(CUDAQ_ERR_INVALID_ARG, "context_type is %d: accepted are RING_BUFFER (0) and UNIFIED (1)",
                       static_cast<int>(kind));
  });
}

cudaq_status_t connect_bridge(cudaq_realtime_bridge_handle_t handle) {
  return with_bridge("gpu-roce connect", handle, [](gpu_roce_bridge &bridge) { return bridge.connect(); });
}

cudaq_status_t launch(cudaq_realtime_bridge_handle_t handle) {
  return with_bridge("gpu-roce launch", handle, [](gpu_roce_bridge &bridge) { return bridge.launch(); });
}

cudaq_status_t disconnect(cudaq_realtime_bridge_handle_t handle) {
  return with_bridge("gpu-roce disconnect", handle, [](gpu_roce_bridge &bridge) { return bridge.disconnect(); });
}

cudaq_status_t get_cpu_dataplane(cudaq_realtime_bridge_handle_t handle, cudaq_cpu_dataplane_t *) {
  return with_bridge("gpu-roce get_cpu_dataplane", handle, [](gpu_roce_bridge &) -> status_or_reason {
    return {CUDAQ_ERR_UNSUPPORTED, "the unified loop of this provider runs on the GPU"};
  });
}

cudaq_status_t get_endpoint_info(cudaq_realtime_bridge_handle_t handle, char *buffer, size_t length) {
  return with_bridge("gpu-roce get_endpoint_info", handle, [&](gpu_roce_bridge &bridge) -> status_or_reason {
    if (buffer == nullptr)
      return missing("buffer");
    const std::string &line = bridge.endpoint();
    if (length <= line.size())
      return make_reason(CUDAQ_ERR_INVALID_ARG, "length is %zu: the line needs %zu", length, line.size() + 1);
    std::memcpy(buffer, line.c_str(), line.size() + 1);
    return {};
  });
}

cudaq_status_t get_ring_geometry(cudaq_realtime_bridge_handle_t handle, uint32_t *num_slots, uint32_t *slot_size) {
  return with_bridge("gpu-roce get_ring_geometry", handle, [&](gpu_roce_bridge &bridge) -> status_or_reason {
    if (num_slots == nullptr || slot_size == nullptr)
      return missing(num_slots == nullptr ? "num_slots" : "slot_size");
    *num_slots = bridge.options().num_pages;
    *slot_size = bridge.options().page_size;
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
                                                    connect_bridge,
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
