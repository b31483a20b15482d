// SPDX-License-Identifier: Apache-2.0
// The table that the loader calls. A handle is a ucx_node.
#include "lib/transport/provider/provider_entries.h"
#include "lib/transport/ucx/ucx_node.h"

namespace {

using namespace cudaq::realtime::detail;

struct ucx_provider {
  using instance = ucx_node;
  static constexpr char kPrefix[] = "ucx ";

  static expected<> create(int argc, char **argv, std::unique_ptr<ucx_node> &made) {
    ucx_options options;
    if (expected<> result = read_ucx_options(argc, argv, options); result.failed())
      return result;
    made = std::make_unique<ucx_node>();
    return made->open(options);
  }
  static expected<> close(ucx_node &) { return {}; }

  static expected<> context(ucx_node &, cudaq_realtime_transport_context_t kind, void *out) {
    if (kind == RING_BUFFER)
      return make_reason(CUDAQ_ERR_UNSUPPORTED, "context_type is RING_BUFFER: the provider has the unified shape only");
    write_host_driven(out);
    return {};
  }
  static expected<> dataplane(ucx_node &node, cudaq_cpu_dataplane_t &out) {
    out = node.dataplane();
    return {};
  }

  // Routers come at any time after create: there is nothing to wait for.
  static expected<> connect(ucx_node &) { return {}; }
  static expected<> launch(ucx_node &node) {
    node.launch();
    return {};
  }
  static expected<> disconnect(ucx_node &node) {
    node.disconnect();
    return {};
  }

  static const std::string &endpoint(ucx_node &node) { return node.endpoint(); }
  static std::uint32_t slots(ucx_node &node) { return node.options().num_slots; }
  static std::uint32_t slot_bytes(ucx_node &node) { return node.options().slot_size; }
};

} // namespace

extern "C" {

CUDAQ_REALTIME_API cudaq_realtime_bridge_interface_t *cudaq_realtime_get_bridge_interface(void) {
  static cudaq_realtime_bridge_interface_t table = provider_entries<ucx_provider>::table();
  return &table;
}

/* The text of the last entry that failed on this thread. */
CUDAQ_REALTIME_API const char *cudaq_realtime_get_bridge_error(void) { return last_error_text(); }

} // extern "C"
