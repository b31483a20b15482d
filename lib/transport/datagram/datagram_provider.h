// SPDX-License-Identifier: Apache-2.0
// An instance of a provider over datagrams, with the choice between the two shapes. A provider adds its options and its
// wire.
#pragma once

#include "cudaq/realtime/daemon/bridge/udp_provider.h"
#include "lib/transport/datagram/datagram_dataplane.h"
#include "lib/transport/datagram/datagram_ring.h"
#include "lib/transport/provider/provider_instance.h"

namespace cudaq::realtime::detail {

class datagram_provider : public provider_instance {
public:
  /// The endpoint line is then `transport= port= address= frame_size=`; a provider may add words to it.
  expected<> open(const datagram_options &options, std::unique_ptr<datagram_wire> wire);

  expected<> launch() override;
  expected<> disconnect() override;
  expected<> close() override;
  bool unified() const override { return dataplane_ != nullptr; }
  cudaq_cpu_dataplane_t dataplane() override;
  const datagram_counters &counters() const { return exchange_->counters(); }

private:
  std::unique_ptr<datagram_exchange> exchange_;
  std::unique_ptr<datagram_dataplane> dataplane_; ///< one of these two is set
  std::unique_ptr<datagram_ring> pump_;
};

/// The body of cudaq_udp_get_statistics, which each provider over datagrams exports.
cudaq_status_t get_request_statistics(const char *endpoint, cudaq_udp_statistics_t *out);

} // namespace cudaq::realtime::detail
