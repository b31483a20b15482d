// SPDX-License-Identifier: Apache-2.0
// The ring shape: one thread is producer and consumer of a ring that a dispatcher serves (docs/ring_protocol.md). The
// adapter has written the request into its slot already: the thread only sets the flag.
#pragma once

#include "lib/transport/cpu_roce/cpu_roce_exchange.h"

namespace cudaq::realtime::detail {

class cpu_roce_ring {
public:
  explicit cpu_roce_ring(cpu_roce_exchange &exchange) : exchange_(exchange) {
    in_flight_.reserve(exchange.options().num_slots);
  }

  expected<> launch();
  /// Sends the answers that are in the ring, and ends the thread. CUDAQ_ERR_TIMEOUT: it did not end.
  expected<> disconnect();

  /// One turn; returns its work count. For tests without a thread, too.
  std::uint32_t turn() { return collect() + receive(); }

private:
  void run();
  std::uint32_t collect();
  /// Returns true if the slot is the peer's again.
  bool poll_answer(std::uint32_t slot);
  std::uint32_t receive();

  cpu_roce_exchange &exchange_;
  std::uint32_t turns_ = 0;
  std::vector<std::uint32_t> in_flight_; ///< in the order of their requests
  shared_word<std::uint32_t> stop_;
  loop_thread thread_;
};

} // namespace cudaq::realtime::detail
