// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/datagram_exchange.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace cudaq::realtime::detail {
namespace {

std::span<std::uint8_t> write_status(cudaq_rpc_response_t &frame, std::int32_t status, std::uint32_t request_id,
                                     std::uint64_t ptp_timestamp) {
  frame = {CUDAQ_RPC_MAGIC_RESPONSE, status, 0, request_id, ptp_timestamp};
  return {reinterpret_cast<std::uint8_t *>(&frame), sizeof(frame)};
}

} // namespace

datagram_exchange::datagram_exchange(const datagram_options &options, std::unique_ptr<datagram_wire> wire,
                                     const cudaq_ringbuffer_t &ring)
    : options_(options), ring_(ring), gate_(options_, counters_), wire_(std::move(wire)),
      incoming_(wire_->make_receiver()), answers_(wire_->make_sender()), refusals_(wire_->make_sender()),
      requests_(options.num_slots), bounce_(std::size_t{kUdpBatch} * options.slot_size) {}

expected<> datagram_exchange::open() {
  udp_address local;
  if (expected<> result = udp_address_of("--bind", options_.bind_address, options_.port, local); result.failed())
    return result;
  if (expected<> result = socket_.open(local, options_.receive_buffer); result.failed())
    return result;
  // As many requests wait as the socket's buffer would hold: the system counts more than twice the bytes of a small
  // datagram.
  constexpr std::size_t kFewestWaiting = 64, kLeastCounted = 512;
  waiting_.set_limit(
      std::max(kFewestWaiting, socket_.receive_buffer() / std::max<std::size_t>(kLeastCounted, options_.slot_size)));
  return wire_->prepare(socket_);
}

std::uint32_t datagram_exchange::receive(std::uint32_t max_count) {
  const int n = incoming_->receive(socket_, max_count);
  if (n < 0)
    counters_.receive_errors.bump();
  if (n <= 0)
    return 0;
  if (const std::uint32_t dropped = incoming_->dropped_by_system())
    counters_.dropped_kernel.bump(dropped);
  if (options_.replay_window != 0) // only the replay window knows times
    received_at_ = std::chrono::steady_clock::now();
  return static_cast<std::uint32_t>(n);
}

gate_decision datagram_exchange::judge(const received_frame &frame, bool room) {
  const gate_decision decision = gate_.judge(frame, room, received_at_);
  if (decision.what == gate_decision::action::answer)
    refusals_->add(*frame.from, decision.replay.empty()
                                    ? write_status(refusal_frames_[refusals_->count()], decision.status,
                                                   decision.header.request_id, decision.header.ptp_timestamp)
                                    : decision.replay);
  return decision;
}

bool datagram_exchange::accept_received(std::uint32_t i, std::uint32_t slot) {
  const received_frame frame = incoming_->frame(i);
  return frame.from != nullptr && accept(frame, slot);
}

/// Without memory for the change, all that waits is dropped, and so are the `more` requests that it would add.
template <class Change>
void datagram_exchange::change_waiting(Change &&how, std::size_t more) {
  const std::size_t all = waiting_.size() + more;
  try {
    how();
  } catch (const std::bad_alloc &) {
    waiting_.clear();
    counters_.dropped_kernel.bump(all);
  }
}

bool datagram_exchange::accept(const received_frame &frame, std::uint32_t slot) {
  const gate_decision decision = judge(frame, true);
  if (decision.what != gate_decision::action::accept)
    return false;
  std::uint8_t *const target = rx_slot(slot);
  if (frame.bytes.data() != target)
    std::memcpy(target, frame.bytes.data(), frame.bytes.size());
  std::memset(target + frame.bytes.size(), 0, ring_.rx_stride_sz - frame.bytes.size());
  requests_[slot] = {*frame.from, decision.key, decision.header.request_id, decision.header.ptp_timestamp, true, false};
  if (has_waiting_requests())
    change_waiting([&] { waiting_.hold(*frame.from); }, 0);
  return true;
}

bool datagram_exchange::take_waiting(std::uint32_t slot) {
  while (has_waiting_requests()) {
    const fair_queue::frame next = waiting_.next();
    if (refusals_->count() == kUdpBatch)
      send_refusals();
    if (accept({&next.from, next.bytes, next.cut}, slot))
      return true;
  }
  return false;
}

void datagram_exchange::let_wait(const received_frame &frame) {
  change_waiting(
      [&] {
        if (!has_waiting_requests())
          for (const slot_request &request : requests_)
            if (request.open)
              waiting_.hold(request.from);
        if (!waiting_.add(frame))
          counters_.dropped_kernel.bump();
      },
      1);
}

void datagram_exchange::send_refusals() {
  if (refusals_->count() == 0)
    return;
  const std::uint32_t queued = refusals_->count();
  const frame_sender::result sent = refusals_->flush(socket_);
  counters_.replied.bump(sent.done - sent.failed);
  counters_.send_errors.bump(queued - sent.done + sent.failed);
}

std::uint32_t datagram_exchange::receive_without_slot() {
  for (std::uint32_t i = 0; i < kUdpBatch; ++i)
    incoming_->set_target(i, bounce_.data() + std::size_t{i} * options_.slot_size, options_.slot_size);
  const std::uint32_t n = receive(kUdpBatch);
  for (std::uint32_t i = 0; i < n; ++i) {
    const received_frame frame = incoming_->frame(i);
    if (frame.from == nullptr)
      continue;
    if (options_.busy_reply)
      judge(frame, false);
    else
      let_wait(frame);
  }
  send_refusals();
  return n;
}

void datagram_exchange::queue_answer(std::uint32_t slot) {
  std::uint8_t *const frame = ring_.tx_data_host + slot * ring_.tx_stride_sz;
  cudaq_rpc_response_t header;
  std::memcpy(&header, frame, sizeof(header));
  // Bytes after the frame may be of an earlier answer, to another peer: they are not sent.
  const bool valid =
      header.magic == CUDAQ_RPC_MAGIC_RESPONSE && header.result_len <= options_.slot_size - CUDAQ_RPC_HEADER_SIZE;
  queue(slot, {frame, CUDAQ_RPC_HEADER_SIZE + (valid ? header.result_len : 0)});
}

void datagram_exchange::queue_status(std::uint32_t slot, std::int32_t status) {
  queue(slot, write_status(answer_frames_[answers_->count()], status, requests_[slot].request_id,
                           requests_[slot].ptp_timestamp));
}

void datagram_exchange::queue(std::uint32_t slot, std::span<std::uint8_t> frame) {
  slot_request &request = requests_[slot];
  if (!request.answered) {
    request.answered = true;
    gate_.answered(request.key, frame);
  }
  answers_->add(request.from, frame);
}

std::uint32_t datagram_exchange::send_answers() {
  const frame_sender::result sent = answers_->flush(socket_);
  counters_.replied.bump(sent.done - sent.failed);
  counters_.send_errors.bump(sent.failed);
  return sent.done;
}

void datagram_exchange::close(std::uint32_t slot) {
  requests_[slot].open = false;
  if (has_waiting_requests())
    waiting_.release(requests_[slot].from);
}

void datagram_exchange::close_unanswered(std::uint32_t slot) {
  close(slot);
  gate_.unanswered(requests_[slot].key);
}

} // namespace cudaq::realtime::detail
