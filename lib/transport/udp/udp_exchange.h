// SPDX-License-Identifier: Apache-2.0
// What both shapes of the udp provider share: the ring's memory, the socket, the gate, and whose request is in which
// slot. One thread uses it at a time.
#pragma once

#include "lib/transport/udp/request_gate.h"
#include "lib/transport/udp/udp_socket.h"

#include <array>
#include <vector>

namespace cudaq::realtime::detail {

/// The request that is in a slot.
struct slot_request {
  udp_address from;
  request_key key;
  std::uint32_t request_id = 0;
  std::uint64_t ptp_timestamp = 0;
  bool open = false;     ///< accepted, and its answer is not sent yet
  bool answered = false; ///< its answer is kept by the gate, and waits until the system can send it
};

class udp_exchange {
public:
  udp_exchange(const udp_options &options, const cudaq_ringbuffer_t &ring);

  status_or_reason open();

  const udp_options &options() const { return options_; }
  const cudaq_ringbuffer_t &ring() const { return ring_; }
  const udp_socket &socket() const { return socket_; }
  udp_counters &counters() { return counters_; }
  slot_request &request(std::uint32_t slot) { return requests_[slot]; }
  std::uint8_t *rx_slot(std::uint32_t slot) const { return ring_.rx_data_host + slot * ring_.rx_stride_sz; }
  volatile std::uint64_t &rx_flag(std::uint32_t slot) const { return ring_.rx_flags_host[slot]; }
  volatile std::uint64_t &tx_flag(std::uint32_t slot) const { return ring_.tx_flags_host[slot]; }

  // --- receiving ---
  std::size_t size(std::uint32_t i) const { return incoming_.size(i); }
  void set_target(std::uint32_t i, std::uint8_t *target) { incoming_.set_target(i, target, options_.slot_size); }
  /// Receives at most `most` datagrams to the targets.
  std::uint32_t receive(std::uint32_t most);
  /// Judges datagram i, which lies in `bytes`. True: it is accepted, and the caller puts it in a slot. Otherwise it is
  /// dropped, or its answer is queued.
  bool take(std::uint32_t i, const std::uint8_t *bytes, bool room, gate_decision &decision);
  /// Completes a slot that holds the accepted datagram i: the bytes after the datagram, and the record of the slot.
  void fill(std::uint32_t i, std::uint32_t slot, const gate_decision &decision);
  /// Sends the answers that `take` has queued. What the system has no room for is dropped: the peer can ask again.
  void send_refusals();
  /// With --busy-reply: receives while no slot is free, and answers. Returns the number of datagrams.
  std::uint32_t refuse();

  // --- answering ---
  /// Gives the answer in the TX slot to the gate, and queues it. At most kUdpBatch until send_answers.
  void queue_answer(std::uint32_t slot);
  /// The same with a status in place of a frame.
  void queue_status(std::uint32_t slot, std::int32_t status);
  /// Returns how many of the queued answers are done.
  std::uint32_t send_answers();
  /// The dispatcher has dropped the request.
  void close_unanswered(std::uint32_t slot);

private:
  void queue(std::uint32_t slot, std::span<std::uint8_t> frame);

  const udp_options options_;
  const cudaq_ringbuffer_t ring_;
  udp_counters counters_;
  request_gate gate_;
  udp_socket socket_;
  receive_batch incoming_;
  send_batch answers_, refusals_;
  peer_windows::time received_at_{};
  std::vector<slot_request> requests_;
  std::vector<std::uint8_t> bounce_; ///< datagrams that are received without a slot
  std::array<cudaq_rpc_response_t, kUdpBatch> answer_frames_{}, refusal_frames_{};
};

} // namespace cudaq::realtime::detail
