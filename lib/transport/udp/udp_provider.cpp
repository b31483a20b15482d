// SPDX-License-Identifier: Apache-2.0
// The udp provider: options of all providers over datagrams, and the wire of one datagram for each slot.
#include "lib/transport/datagram/datagram_provider.h"
#include "lib/transport/udp/udp_wire.h"

namespace cudaq::realtime::detail {
namespace {

cudaq_status_t create(cudaq_realtime_bridge_handle_t *handle, int argc, char **argv) {
  return guarded("create", [&]() -> status_or_reason {
    if (handle == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "handle is NULL");
    datagram_options options;
    if (status_or_reason refused = option_reader(options, false).read(argc, argv))
      return refused;
    auto made = std::make_unique<datagram_provider>();
    if (status_or_reason refused = made->open(options, make_udp_wire(options.slot_size)))
      return refused;
    publish_instance(std::move(made), handle);
    return {};
  });
}

} // namespace
} // namespace cudaq::realtime::detail

extern "C" {

CUDAQ_REALTIME_API cudaq_realtime_bridge_interface_t *cudaq_realtime_get_bridge_interface(void) {
  using namespace cudaq::realtime::detail;
  static cudaq_realtime_bridge_interface_t table = provider_table(create);
  return &table;
}

const char *cudaq_realtime_get_bridge_error(void) { return cudaq::realtime::detail::last_error_text(); }

cudaq_status_t cudaq_udp_get_statistics(const char *endpoint, cudaq_udp_statistics_t *out) {
  return cudaq::realtime::detail::get_request_statistics(endpoint, out);
}

} // extern "C"
