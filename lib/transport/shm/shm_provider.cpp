// SPDX-License-Identifier: Apache-2.0
// The table that the loader calls. A handle is a shm_server.
#include "lib/transport/provider/provider_entries.h"
#include "lib/transport/shm/shm_server.h"

namespace {

using namespace cudaq::realtime::detail;

struct shm_provider {
  using instance = shm_server;
  static constexpr char kPrefix[] = "shm ";

  static expected<> create(int argc, char **argv, std::unique_ptr<shm_server> &made) {
    shm_options options;
    if (expected<> result = parse_shm_options(argc, argv, options); result.failed())
      return result;
    made = std::make_unique<shm_server>(std::move(options));
    return made->start();
  }
  static expected<> close(shm_server &) { return {}; }

  static expected<> context(shm_server &server, cudaq_realtime_transport_context_t kind, void *out) {
    if (expected<> result = need_shape(kind, server.options().unified); result.failed())
      return result;
    if (kind == UNIFIED) {
      write_host_driven(out);
    } else {
      const cudaq_ringbuffer_t ring = server.ring();
      std::memcpy(out, &ring, sizeof(ring));
    }
    return {};
  }
  static expected<> dataplane(shm_server &server, cudaq_cpu_dataplane_t &out) {
    if (expected<> result = need_dataplane(server.options().unified); result.failed())
      return result;
    out = server.dataplane();
    return {};
  }

  // Clients attach at any time after create: there is nothing to wait for.
  static expected<> connect(shm_server &) { return {}; }
  // Clients write into the ring themselves: there are no threads to start.
  static expected<> launch(shm_server &) { return {}; }
  static expected<> disconnect(shm_server &server) {
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
