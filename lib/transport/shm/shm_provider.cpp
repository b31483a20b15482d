// SPDX-License-Identifier: Apache-2.0
// The table that the loader calls. A handle is a shm_server.
#include "lib/transport/provider/provider_entries.h"
#include "lib/transport/shm/shm_server.h"

namespace {

using namespace cudaq::realtime::detail;

struct shm_provider {
  using instance = shm_server;
  static constexpr char kPrefix[] = "shm ";

  static status_or_reason create(int argc, char **argv, std::unique_ptr<shm_server> &made) {
    shm_options options;
    if (status_or_reason refused = parse_shm_options(argc, argv, options))
      return refused;
    made = std::make_unique<shm_server>(std::move(options));
    return made->start();
  }
  static status_or_reason close(shm_server &) { return {}; }

  static status_or_reason context(shm_server &server, cudaq_realtime_transport_context_t kind, void *out) {
    if (status_or_reason refused = need_shape(kind, server.options().unified))
      return refused;
    if (kind == UNIFIED) {
      write_host_driven(out);
    } else {
      const cudaq_ringbuffer_t ring = server.ring();
      std::memcpy(out, &ring, sizeof(ring));
    }
    return {};
  }
  static status_or_reason dataplane(shm_server &server, cudaq_cpu_dataplane_t &out) {
    if (status_or_reason refused = need_dataplane(server.options().unified))
      return refused;
    out = server.dataplane();
    return {};
  }

  // Clients attach at any time after create: there is nothing to wait for.
  static status_or_reason connect(shm_server &) { return {}; }
  // Clients write into the ring themselves: there are no threads to start.
  static status_or_reason launch(shm_server &) { return {}; }
  static status_or_reason disconnect(shm_server &server) {
    server.disconnect();
    return {};
  }

  static std::string endpoint(shm_server &server) { return server.endpoint(); }
  static std::uint32_t slots(shm_server &server) { return server.slot_numbers(); }
  static std::uint32_t slot_bytes(shm_server &server) { return server.options().slot_size; }
};

} // namespace

extern "C" {

CUDAQ_REALTIME_API cudaq_realtime_bridge_interface_t *cudaq_realtime_get_bridge_interface(void) {
  static cudaq_realtime_bridge_interface_t table = provider_entries<shm_provider>::table();
  return &table;
}

/* The text of the last entry that failed on this thread. */
CUDAQ_REALTIME_API const char *cudaq_realtime_get_bridge_error(void) { return last_error_text(); }

} // extern "C"
