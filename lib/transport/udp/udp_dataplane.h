// SPDX-License-Identifier: Apache-2.0
// The unified shape: the dispatcher's loop receives and sends itself, by rx_poll and tx_publish. No thread.
#pragma once

#include "lib/transport/udp/udp_exchange.h"

namespace cudaq::realtime::detail {

/// One thread calls its functions. A slot is free, ready (received, waits for poll), lent to the loop, or waits to be
/// sent because the system had no room.
class udp_dataplane {
public:
  explicit udp_dataplane(udp_exchange &exchange);

  cudaq_rx_status_t poll(std::uint32_t &slot);
  status_or_reason publish(std::uint32_t slot);

private:
  void receive();
  bool send_waiting();
  void take_back_dropped();

  udp_exchange &exchange_;
  std::vector<std::uint32_t> free_;    ///< taken from the end
  std::vector<std::uint32_t> ready_;   ///< in the order of arrival, from next_ready_ on
  std::vector<std::uint32_t> lent_;    ///< in no order
  std::vector<std::uint32_t> waiting_; ///< in the order of publish
  std::size_t next_ready_ = 0;
  std::uint32_t empty_polls_ = 0;
};

} // namespace cudaq::realtime::detail
