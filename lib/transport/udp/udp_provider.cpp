// SPDX-License-Identifier: Apache-2.0
// The udp provider: options of all providers over datagrams, and the wire of one datagram for each slot.
#include "lib/transport/datagram/datagram_provider.h"
#include "lib/transport/udp/udp_wire.h"

namespace cudaq::realtime::detail {
namespace {

struct udp_entries : instance_entries {
  static constexpr char kPrefix[] = "udp ";

  static expected<> create(int argc, char **argv, std::unique_ptr<provider_instance> &out) {
    datagram_options options;
    if (expected<> result = option_reader(options, false).read(argc, argv); result.failed())
      return result;
    auto made = std::make_unique<datagram_provider>();
    if (expected<> result = made->open(options, make_udp_wire(options.slot_size)); result.failed())
      return result;
    out = list_instance(std::move(made));
    return {};
  }
};

} // namespace
} // namespace cudaq::realtime::detail

extern "C" {

CUDAQ_REALTIME_API cudaq_realtime_bridge_interface_t *cudaq_realtime_get_bridge_interface(void) {
  using namespace cudaq::realtime::detail;
  static cudaq_realtime_bridge_interface_t table = provider_entries<udp_entries>::table();
  return &table;
}

const char *cudaq_realtime_get_bridge_error(void) { return cudaq::realtime::detail::last_error_text(); }

cudaq_status_t cudaq_udp_get_statistics(const char *endpoint, cudaq_udp_statistics_t *out) {
  return cudaq::realtime::detail::get_request_statistics(endpoint, out);
}

} // extern "C"
