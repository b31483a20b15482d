// SPDX-License-Identifier: Apache-2.0
// The table that the loader calls. A handle is a shm_server.
#include "lib/transport/shm/shm_server.h"

#include <cstring>

namespace {

using namespace cudaq::realtime::detail;

status_or_reason missing(const char *argument) { return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", argument); }

template <class Body>
cudaq_status_t with_server(const char *function, void *handle, Body &&body) {
  return guarded(function, [&]() -> status_or_reason {
    if (handle == nullptr)
      return missing("handle");
    return body(*static_cast<shm_server *>(handle));
  });
}

cudaq_status_t create(cudaq_realtime_bridge_handle_t *handle, int argc, char **argv) {
  return guarded("shm create", [&]() -> status_or_reason {
    if (handle == nullptr)
      return missing("handle");
    shm_options options;
    if (status_or_reason found = parse_shm_options(argc, argv, options))
      return found;
    auto server = std::make_unique<shm_server>(std::move(options));
    if (status_or_reason found = server->start())
      return found;
    *handle = server.release();
    return {};
  });
}

cudaq_status_t destroy(cudaq_realtime_bridge_handle_t handle) {
  return with_server("shm destroy", handle, [](shm_server &server) -> status_or_reason {
    delete &server;
    return {};
  });
}

cudaq_status_t get_transport_context(cudaq_realtime_bridge_handle_t handle, cudaq_realtime_transport_context_t kind,
                                     void *out) {
  return with_server("shm get_transport_context", handle, [&](shm_server &server) -> status_or_reason {
    if (out == nullptr)
      return missing("out");
    if (kind != RING_BUFFER && kind != UNIFIED)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "context_type is %d: accepted are RING_BUFFER (0) and UNIFIED (1)",
                         static_cast<int>(kind));
    if (server.options().unified != (kind == UNIFIED))
      return {CUDAQ_ERR_UNSUPPORTED, server.options().unified
                                         ? "context_type is RING_BUFFER: the provider was created with --unified"
                                         : "context_type is UNIFIED: the provider was created without --unified"};
    if (kind == RING_BUFFER) {
      const cudaq_ringbuffer_t ring = server.ring();
      std::memcpy(out, &ring, sizeof(ring));
    } else {
      const cudaq_unified_dispatch_ctx_t host_driven{};
      std::memcpy(out, &host_driven, sizeof(host_driven));
    }
    return {};
  });
}

cudaq_status_t nothing_to_do(const char *function, cudaq_realtime_bridge_handle_t handle) {
  return with_server(function, handle, [](shm_server &) { return status_or_reason{}; });
}

// Clients attach at any time after create: there is nothing to wait for.
cudaq_status_t connect_provider(cudaq_realtime_bridge_handle_t handle) { return nothing_to_do("shm connect", handle); }

// Clients write into the ring themselves: there are no threads to start.
cudaq_status_t launch(cudaq_realtime_bridge_handle_t handle) { return nothing_to_do("shm launch", handle); }

cudaq_status_t disconnect(cudaq_realtime_bridge_handle_t handle) {
  return with_server("shm disconnect", handle, [](shm_server &server) {
    server.disconnect();
    return status_or_reason{};
  });
}

cudaq_status_t get_cpu_dataplane(cudaq_realtime_bridge_handle_t handle, cudaq_cpu_dataplane_t *out) {
  return with_server("shm get_cpu_dataplane", handle, [&](shm_server &server) -> status_or_reason {
    if (out == nullptr)
      return missing("out");
    if (!server.options().unified)
      return {CUDAQ_ERR_UNSUPPORTED, "the provider was created without --unified"};
    *out = server.dataplane();
    return {};
  });
}

cudaq_status_t get_endpoint_info(cudaq_realtime_bridge_handle_t handle, char *buffer, size_t length) {
  return with_server("shm get_endpoint_info", handle, [&](shm_server &server) -> status_or_reason {
    if (buffer == nullptr)
      return missing("buffer");
    const std::string line = server.endpoint();
    if (length <= line.size())
      return make_reason(CUDAQ_ERR_INVALID_ARG, "length is %zu: the line needs %zu", length, line.size() + 1);
    std::memcpy(buffer, line.c_str(), line.size() + 1);
    return {};
  });
}

cudaq_status_t get_ring_geometry(cudaq_realtime_bridge_handle_t handle, uint32_t *num_slots, uint32_t *slot_size) {
  return with_server("shm get_ring_geometry", handle, [&](shm_server &server) -> status_or_reason {
    if (num_slots == nullptr || slot_size == nullptr)
      return missing(num_slots == nullptr ? "num_slots" : "slot_size");
    *num_slots = server.slot_numbers();
    *slot_size = server.options().slot_size;
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
