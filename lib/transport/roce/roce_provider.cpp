// SPDX-License-Identifier: Apache-2.0
// The roce provider: options of all providers over datagrams and of RoCE, and the wire of packets of UC.
#include "lib/transport/datagram/datagram_provider.h"
#include "lib/transport/roce/roce_options.h"

#include <cstdio>

namespace cudaq::realtime::detail {
namespace {

/// An instance.
class roce_provider final : public datagram_provider {
public:
  expected<> open_roce(const roce_options &options) {
    if (expected<> result = open(options.common, make_roce_wire(options.wire, packets_)); result.failed())
      return result;
    char words[100];
    std::snprintf(words, sizeof(words), " qp=0x%x rkey=0x%x buffer_addr=0x0 mtu=%u", options.wire.own_qp,
                  options.wire.rkey, options.wire.mtu);
    endpoint_ += words;
    return {};
  }
  const roce_counters &packets() const { return *packets_; }

private:
  const std::shared_ptr<roce_counters> packets_ = std::make_shared<roce_counters>();
};

struct roce_entries : instance_entries {
  static constexpr char kPrefix[] = "roce ";

  static expected<> create(int argc, char **argv, std::unique_ptr<provider_instance> &out) {
    roce_options options;
    if (expected<> result = parse_roce_options(argc, argv, options); result.failed())
      return result;
    auto made = std::make_unique<roce_provider>();
    if (expected<> result = made->open_roce(options); result.failed())
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
  static cudaq_realtime_bridge_interface_t table = provider_entries<roce_entries>::table();
  return &table;
}

const char *cudaq_realtime_get_bridge_error(void) { return cudaq::realtime::detail::last_error_text(); }

cudaq_status_t cudaq_udp_get_statistics(const char *endpoint, cudaq_udp_statistics_t *out) {
  return cudaq::realtime::detail::get_request_statistics(endpoint, out);
}

cudaq_status_t cudaq_roce_get_statistics(const char *endpoint, cudaq_roce_statistics_t *out) {
  using namespace cudaq::realtime::detail;
  return read_statistics("cudaq_roce_get_statistics", endpoint, out,
                         [](const provider_instance &instance, cudaq_roce_statistics_t &all) {
                           static_cast<const roce_provider &>(instance).packets().read(all); // all instances are such
                         });
}

} // extern "C"
