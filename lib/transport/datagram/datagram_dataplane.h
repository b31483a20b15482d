// SPDX-License-Identifier: Apache-2.0
// The unified shape: the dispatcher's loop receives and sends itself, by rx_poll and tx_publish. No thread.
#pragma once

#include "cudaq/realtime/daemon/bridge/bridge_types.h"
#include "lib/base/runner.h"
#include "lib/transport/datagram/datagram_exchange.h"

#include <mutex>

namespace cudaq::realtime::detail {

/// One thread calls poll and publish, and another one may call launch and disconnect meanwhile. A slot is free, ready
/// (received, waits for poll), taken by the loop, or waits to be sent because the system had no room.
class datagram_dataplane {
public:
  explicit datagram_dataplane(datagram_exchange &exchange);

  cudaq_rx_status_t poll(std::uint32_t &slot);
  expected<> publish(std::uint32_t slot);

  /// poll returns requests again.
  void launch();
  /// From now on poll returns no request: requests that have arrived stay in the ring. Sends the answers that wait,
  /// because after the end of the loop no other call does. CUDAQ_ERR_TIMEOUT: the system had no room for all of them
  /// within 100 ms.
  expected<> disconnect();

private:
  enum stop_phase : std::uint32_t {
    kRuns = 0,
    kFlushes = 1, ///< a disconnect runs: poll leaves the mutex to it
    kStopped = 2
  };

  // All below: mutex_ is held.
  void receive();
  bool send_waiting_answers();
  void take_back_dropped();

  datagram_exchange &exchange_;
  std::mutex mutex_;                   ///< disconnect holds it for one batch at a time; poll does not wait for it
  shared_word<std::uint32_t> stopped_; ///< a stop_phase; one who holds mutex_ again and again starves the others
  std::vector<std::uint32_t> free_;    ///< taken from the end
  std::vector<std::uint32_t> ready_;   ///< in the order of arrival, from next_ready_ on
  std::vector<std::uint32_t> taken_;   ///< in no order
  std::vector<std::uint32_t> waiting_; ///< in the order of publish
  std::size_t next_ready_ = 0;
  std::uint32_t empty_polls_ = 0;
};

} // namespace cudaq::realtime::detail
