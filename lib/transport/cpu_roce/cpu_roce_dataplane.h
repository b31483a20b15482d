// SPDX-License-Identifier: Apache-2.0
// The unified shape: the dispatcher's loop polls the adapter and sends itself, by rx_poll and tx_publish. No thread is
// between the adapter and the handler.
#pragma once

#include "cudaq/realtime/daemon/bridge/bridge_types.h"
#include "lib/transport/cpu_roce/cpu_roce_exchange.h"

namespace cudaq::realtime::detail {

/// One thread at a time.
class cpu_roce_dataplane {
public:
  explicit cpu_roce_dataplane(cpu_roce_exchange &exchange) : exchange_(exchange) {
    taken_.reserve(exchange.options().num_slots);
  }

  cudaq_rx_status_t poll(std::uint32_t &slot);
  expected<> publish(std::uint32_t slot);

private:
  void take_back_dropped();

  cpu_roce_exchange &exchange_;
  std::vector<std::uint32_t> taken_; ///< in no order
  std::uint32_t empty_polls_ = 0;
};

} // namespace cudaq::realtime::detail
