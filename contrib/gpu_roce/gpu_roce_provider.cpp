// SPDX-License-Identifier: Apache-2.0
// The table that the loader calls. A handle is a gpu_roce_bridge.
#include "contrib/gpu_roce/gpu_roce_bridge.h"
#include "lib/transport/provider/provider_entries.h"

namespace {

using namespace cudaq::realtime::detail;

struct gpu_roce_provider {
  using instance = gpu_roce_bridge;
  static constexpr char kPrefix[] = "gpu-roce ";

  static expected<> create(int argc, char **argv, std::unique_ptr<gpu_roce_bridge> &made) {
    gpu_roce_options options;
    if (expected<> result = parse_gpu_roce_options(argc, argv, options); result.failed())
      return result;
    made = std::make_unique<gpu_roce_bridge>(std::move(options));
    return made->open();
  }
  static expected<> close(gpu_roce_bridge &bridge) { return bridge.close(); }

  static expected<> context(gpu_roce_bridge &bridge, cudaq_realtime_transport_context_t kind, void *out) {
    if (kind == RING_BUFFER)
      return bridge.ring(*static_cast<cudaq_ringbuffer_t *>(out));
    return bridge.unified(*static_cast<cudaq_unified_dispatch_ctx_t *>(out));
  }
  static expected<> dataplane(gpu_roce_bridge &, cudaq_cpu_dataplane_t &) {
    return {CUDAQ_ERR_UNSUPPORTED, "the unified loop of this provider runs on the GPU"};
  }

  static expected<> connect(gpu_roce_bridge &bridge) { return bridge.connect(); }
  static expected<> launch(gpu_roce_bridge &bridge) { return bridge.launch(); }
  static expected<> disconnect(gpu_roce_bridge &bridge) { return bridge.disconnect(); }

  static const std::string &endpoint(gpu_roce_bridge &bridge) { return bridge.endpoint(); }
  static std::uint32_t slots(gpu_roce_bridge &bridge) { return bridge.options().num_pages; }
  static std::uint32_t slot_bytes(gpu_roce_bridge &bridge) { return bridge.options().page_size; }
};

} // namespace

extern "C" {

CUDAQ_REALTIME_API cudaq_realtime_bridge_interface_t *cudaq_realtime_get_bridge_interface(void) {
  static cudaq_realtime_bridge_interface_t table = provider_entries<gpu_roce_provider>::table();
  return &table;
}

/* The text of the last entry that failed on this thread. */
CUDAQ_REALTIME_API const char *cudaq_realtime_get_bridge_error(void) { return last_error_text(); }

} // extern "C"
