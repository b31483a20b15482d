// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/udp/udp_exchange.h"

#include <algorithm>
#include <cstring>

namespace cudaq::realtime::detail {
namespace {

std::span<std::uint8_t> write_status(cudaq_rpc_response_t &frame, std::int32_t status, std::uint32_t request_id,
                                     std::uint64_t ptp_timestamp) {
  frame = {CUDAQ_RPC_MAGIC_RESPONSE, status, 0, request_id, ptp_timestamp};
  return {reinterpret_cast<std::uint8_t *>(&frame), sizeof(frame)};
}

} // namespace

udp_exchange::udp_exchange(const udp_options &options, const cudaq_ringbuffer_t &ring)
    : options_(options), ring_(ring), gate_(options_, counters_), answers_(options.slot_size),
      refusals_(options.slot_size), requests_(options.num_slots),
      bounce_(options.busy_reply ? std::size_t{kUdpBatch} * options.slot_size : 0) {}

status_or_reason udp_exchange::open() {
  udp_address local;
  if (status_or_reason refused = udp_address_of("--bind", options_.bind_address, options_.port, local))
    return refused;
  return socket_.open(local, options_.receive_buffer);
}

std::uint32_t udp_exchange::receive(std::uint32_t most) {
  const int n = incoming_.receive(socket_, most);
  if (n < 0)
    counters_.receive_errors.bump();
  if (n <= 0)
    return 0;
  if (const std::uint32_t dropped = incoming_.dropped_by_system())
    counters_.dropped_kernel.bump(dropped);
  if (options_.replay_window != 0) // only the replay window knows times
    received_at_ = std::chrono::steady_clock::now();
  return static_cast<std::uint32_t>(n);
}

bool udp_exchange::take(std::uint32_t i, const std::uint8_t *bytes, bool room, gate_decision &decision) {
  decision = gate_.take({incoming_.from(i), {bytes, incoming_.size(i)}, incoming_.cut(i)}, room, received_at_);
  if (decision.what == gate_decision::action::answer)
    refusals_.add(incoming_.from(i), decision.replay.empty()
                                         ? write_status(refusal_frames_[refusals_.count()], decision.status,
                                                        decision.header.request_id, decision.header.ptp_timestamp)
                                         : decision.replay);
  return decision.what == gate_decision::action::accept;
}

void udp_exchange::fill(std::uint32_t i, std::uint32_t slot, const gate_decision &decision) {
  std::memset(rx_slot(slot) + incoming_.size(i), 0, ring_.rx_stride_sz - incoming_.size(i));
  requests_[slot] = {
      incoming_.from(i), decision.key, decision.header.request_id, decision.header.ptp_timestamp, true, false};
}

void udp_exchange::send_refusals() {
  if (refusals_.count() == 0)
    return;
  const std::uint32_t queued = refusals_.count();
  const send_batch::result sent = refusals_.flush(socket_);
  counters_.replied.bump(sent.done - sent.failed);
  counters_.send_errors.bump(queued - sent.done + sent.failed);
}

std::uint32_t udp_exchange::refuse() {
  if (!options_.busy_reply)
    return 0;
  for (std::uint32_t i = 0; i < kUdpBatch; ++i)
    set_target(i, bounce_.data() + std::size_t{i} * options_.slot_size);
  const std::uint32_t n = receive(kUdpBatch);
  gate_decision decision;
  for (std::uint32_t i = 0; i < n; ++i)
    take(i, bounce_.data() + std::size_t{i} * options_.slot_size, false, decision);
  send_refusals();
  return n;
}

void udp_exchange::queue_answer(std::uint32_t slot) {
  std::uint8_t *const frame = ring_.tx_data_host + slot * ring_.tx_stride_sz;
  cudaq_rpc_response_t header;
  std::memcpy(&header, frame, sizeof(header));
  // Bytes after the frame may be of an earlier answer, to another peer: they are not sent.
  const bool valid =
      header.magic == CUDAQ_RPC_MAGIC_RESPONSE && header.result_len <= options_.slot_size - CUDAQ_RPC_HEADER_SIZE;
  queue(slot, {frame, CUDAQ_RPC_HEADER_SIZE + (valid ? header.result_len : 0)});
}

void udp_exchange::queue_status(std::uint32_t slot, std::int32_t status) {
  queue(slot, write_status(answer_frames_[answers_.count()], status, requests_[slot].request_id,
                           requests_[slot].ptp_timestamp));
}

void udp_exchange::queue(std::uint32_t slot, std::span<std::uint8_t> frame) {
  slot_request &request = requests_[slot];
  if (!request.answered) {
    request.answered = true;
    gate_.answered(request.key, frame);
  }
  answers_.add(request.from, frame);
}

std::uint32_t udp_exchange::send_answers() {
  const send_batch::result sent = answers_.flush(socket_);
  counters_.replied.bump(sent.done - sent.failed);
  counters_.send_errors.bump(sent.failed);
  return sent.done;
}

void udp_exchange::close_unanswered(std::uint32_t slot) {
  requests_[slot].open = false;
  gate_.unanswered(requests_[slot].key);
}

} // namespace cudaq::realtime::detail
