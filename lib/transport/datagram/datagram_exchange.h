// SPDX-License-Identifier: Apache-2.0
// What both shapes of a provider over datagrams share: the ring's memory, the socket, the gate, and whose request is in
// which slot. One thread uses it at a time.
#pragma once

#include "lib/transport/datagram/fair_queue.h"
#include "lib/transport/datagram/request_gate.h"
#include "lib/transport/datagram/udp_socket.h"

#include <array>
#include <memory>
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

class datagram_exchange {
public:
  datagram_exchange(const datagram_options &options, std::unique_ptr<datagram_wire> wire,
                    const cudaq_ringbuffer_t &ring);

  expected<> open();

  const datagram_options &options() const { return options_; }
  const cudaq_ringbuffer_t &ring() const { return ring_; }
  const udp_socket &socket() const { return socket_; }
  datagram_counters &counters() { return counters_; }
  slot_request &request(std::uint32_t slot) { return requests_[slot]; }
  std::uint8_t *rx_slot(std::uint32_t slot) const { return ring_.rx_data_host + slot * ring_.rx_stride_sz; }
  volatile std::uint64_t &rx_flag(std::uint32_t slot) const { return ring_.rx_flags_host[slot]; }
  volatile std::uint64_t &tx_flag(std::uint32_t slot) const { return ring_.tx_flags_host[slot]; }

  // --- receiving ---
  /// Datagram i probably becomes the request of this slot.
  void set_target(std::uint32_t i, std::uint32_t slot) { incoming_->set_target(i, rx_slot(slot), options_.slot_size); }
  /// Receives at most `max_count` datagrams.
  std::uint32_t receive(std::uint32_t max_count);
  /// Judges the frame that ends with datagram i; call it once for each datagram, in their order. True: the frame is
  /// accepted, and lies complete in the slot. Otherwise it is dropped, or its answer is queued.
  bool accept_received(std::uint32_t i, std::uint32_t slot);
  /// Sends the answers that `take` has queued. An answer that the system has no room for is dropped: the peer can send
  /// its request again.
  void send_refusals();
  /// Receives while no slot is free, or while requests wait: with --busy-reply it answers BUSY, else the requests wait,
  /// by sender. Returns the number of datagrams.
  std::uint32_t receive_without_slot();
  /// Requests wait for a slot: they get the next ones, by `take_waiting`.
  bool has_waiting_requests() const { return !waiting_.empty(); }
  /// Puts a request that waits into the slot, judged as by `accept_received`. False: there is none that is accepted.
  bool take_waiting(std::uint32_t slot);

  // --- answering ---
  /// Gives the answer in the TX slot to the gate, and queues it. At most kUdpBatch until send_answers.
  void queue_answer(std::uint32_t slot);
  /// The same with a status in place of a frame.
  void queue_status(std::uint32_t slot, std::int32_t status);
  /// Returns how many of the queued answers are done.
  std::uint32_t send_answers();
  /// The answer is sent: the slot has no request any more.
  void close(std::uint32_t slot);
  /// The dispatcher has dropped the request.
  void close_unanswered(std::uint32_t slot);

private:
  gate_decision judge(const received_frame &frame, bool room);
  bool accept(const received_frame &frame, std::uint32_t slot);
  template <class Change>
  void change_waiting(Change &&how, std::size_t more);
  void let_wait(const received_frame &frame);
  void queue(std::uint32_t slot, std::span<std::uint8_t> frame);

  const datagram_options options_;
  const cudaq_ringbuffer_t ring_;
  datagram_counters counters_;
  request_gate gate_;
  udp_socket socket_;
  const std::unique_ptr<datagram_wire> wire_;
  const std::unique_ptr<frame_receiver> incoming_;
  const std::unique_ptr<frame_sender> answers_, refusals_;
  peer_windows::time received_at_{};
  std::vector<slot_request> requests_;
  fair_queue waiting_;
  std::vector<std::uint8_t> bounce_; ///< datagrams that are received without a slot
  std::array<cudaq_rpc_response_t, kUdpBatch> answer_frames_{}, refusal_frames_{};
};

} // namespace cudaq::realtime::detail
