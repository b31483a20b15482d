// SPDX-License-Identifier: Apache-2.0
// The ring shape: one thread is producer and consumer of a ring that a dispatcher serves (docs/ring_protocol.md).
//
// One thread and not two: the record of a slot, the replay window and the socket then need no lock, and the thread that
// finds an answer is not woken by another one. A turn first sends the answers, so that slots become free, and then
// receives straight into the next free slots. The way of a request, in a ring of 4 slots with slot 0 at the head:
//
//   recvmmsg writes 3 datagrams to slots 0, 1, 2; that in slot 1 has a wrong magic
//   slot 0 is signalled; the datagram of slot 2 is copied to slot 1, which is signalled: the ring order has no gap
//   tx_flags[1] is set first: its answer is sent to the sender of slot 1, then tx_flags[1] = 0
//   rx_flags[1] becomes 0: the slot is free, but the ring order wants slot 2, 3, 0 first
#pragma once

#include "lib/base/runner.h"
#include "lib/transport/datagram/datagram_exchange.h"

namespace cudaq::realtime::detail {

class datagram_ring {
public:
  explicit datagram_ring(datagram_exchange &exchange) : exchange_(exchange), slots_(exchange.options().num_slots) {
    in_flight_.reserve(slots_);
  }

  expected<> launch();
  /// CUDAQ_ERR_TIMEOUT: the thread did not end.
  expected<> end_thread();
  /// Ends the thread, and sends the answers that are in the ring. CUDAQ_ERR_TIMEOUT: the thread did not end, or the
  /// system had no room for all of them within 100 ms.
  expected<> disconnect();

  /// One turn; returns its work count. For tests without a thread, too.
  std::uint32_t turn() { return collect() + receive(); }

private:
  void run();
  void wait_for_work(std::uint32_t empty_turns);
  std::uint32_t collect();
  /// Queues the answer of a slot, if there is one. Returns true if the slot has changed.
  bool poll_answer(std::uint32_t slot);
  std::uint32_t receive();
  void signal(std::uint32_t slot);
  void find_room();

  datagram_exchange &exchange_;
  const std::uint32_t slots_;
  std::uint32_t head_ = 0; ///< the next slot in ring order
  std::uint32_t room_ = 0; ///< number of slots from head_ that are known to be free
  std::uint32_t turns_ = 0;
  std::vector<std::uint32_t> in_flight_; ///< in the order of their requests
  std::array<std::uint32_t, kUdpBatch> queued_{};
  std::uint32_t num_queued_ = 0;
  steady_clock::time_point idle_since_{};
  bool asleep_ = false;
  shared_word<std::uint32_t> stop_;
  loop_thread thread_;
};

} // namespace cudaq::realtime::detail
