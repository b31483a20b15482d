// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/datagram_client.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace cudaq::realtime::detail {

using clock = std::chrono::steady_clock;
constexpr std::size_t kLargestDatagram = 65536;

expected<> datagram_client::open(const datagram_client_options &options, std::unique_ptr<datagram_wire> wire) {
  if (options.window == 0 || (options.window & (options.window - 1)) != 0)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "window %u: a power of two is accepted", options.window);
  if (options.slot_size < CUDAQ_RPC_HEADER_SIZE)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "slot_size %u: at least %u", options.slot_size, CUDAQ_RPC_HEADER_SIZE);
  options_ = options;
  wire_ = std::move(wire);
  incoming_ = wire_->make_receiver();
  outgoing_ = wire_->make_sender();
  requests_.resize(options.window);
  frames_.resize(std::size_t{options.window} * options.slot_size);
  reply_.resize(kLargestDatagram); // so that the size of a longer one is known
  incoming_->set_target(0, reply_.data(), reply_.size());
  if (expected<> result = open_socket(options); result.failed())
    return result;
  return wire_->prepare(socket_);
}

expected<> datagram_client::open_socket(const datagram_client_options &options) {
  if (expected<> result = udp_address_of("address", options.address, options.port, server_); result.failed())
    return result;
  udp_address local;
  if (options.own_address.empty()) {
    if (expected<> result = own_address_towards(server_, local); result.failed())
      return result;
    local.set_port(static_cast<std::uint16_t>(options.own_port));
  } else if (expected<> result = udp_address_of("own address", options.own_address, options.own_port, local);
             result.failed()) {
    return result;
  }
  if (expected<> result = socket_.open(local, options.receive_buffer); result.failed())
    return result;
  return options.reports_refusals ? socket_.connect(server_) : expected<>{};
}

bool datagram_client::send(std::uint32_t id, std::uint32_t function_id, std::span<const std::uint8_t> payload,
                           std::uint64_t ptp_timestamp) {
  const std::uint32_t place = id & (options_.window - 1);
  open_request &request = requests_[place];
  if (request.attempts != 0 || payload.size() > options_.slot_size - CUDAQ_RPC_HEADER_SIZE)
    return false;
  request = {id, 0, static_cast<std::uint32_t>(sizeof(cudaq_rpc_header_t) + payload.size()), {}, {}};
  const cudaq_rpc_header_t header = {CUDAQ_RPC_MAGIC_REQUEST, function_id, static_cast<std::uint32_t>(payload.size()),
                                     id, ptp_timestamp};
  std::uint8_t *const frame = frame_of(place);
  std::memcpy(frame, &header, sizeof(header));
  std::copy(payload.begin(), payload.end(), frame + sizeof(header));
  ++open_;
  transmit(place);
  return true;
}

void datagram_client::transmit(std::uint32_t place) {
  open_request &request = requests_[place];
  ++request.attempts;
  if (options_.retry_after.count() != 0)
    request.sent_at = clock::now();
  if (request.attempts == 1)
    request.first_sent_at = request.sent_at;
  // An error is the same as a lost datagram: a server that does not run refuses, and may run later. The report of an
  // earlier refusal takes the place of a datagram, which is therefore sent again.
  frame_sender &sender = query_sender_ != nullptr ? *query_sender_ : *outgoing_;
  for (bool again = true; again;) {
    sender.add(server_, {frame_of(place), request.length});
    const bool port_unreachable = sender.flush(socket_).port_unreachable;
    again = port_unreachable && !refused_;
    if (port_unreachable)
      note_refusal();
  }
}

void datagram_client::note_refusal() {
  const clock::time_point now = clock::now();
  // Linux reports at most one refusal a second of another machine.
  const clock::duration longest_gap = std::max<clock::duration>(std::chrono::seconds(2), 2 * options_.retry_after);
  if (!refused_ || now - refused_last_ > longest_gap) // this process may have stood still between two refusals
    refused_since_ = now;
  refused_last_ = now;
  refused_ = true;
}

void datagram_client::probe() {
  if (options_.reports_refusals && ::send(socket_.fd(), nullptr, 0, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
      errno == ECONNREFUSED)
    note_refusal();
}

bool datagram_client::refused() const {
  return refused_ && (options_.retry_after.count() == 0 || refused_last_ - refused_since_ >= kMaxRefusedTime);
}

bool datagram_client::is_server(udp_address from) const {
  if (options_.from_any_port)
    from.set_port(server_.port());
  return from == server_;
}

std::optional<datagram_reply> datagram_client::receive() {
  for (int strays = 0; strays < kMaxStrays; ++strays) {
    if (const int n = incoming_->receive(socket_, 1); n <= 0) {
      if (n < 0 && errno == ECONNREFUSED)
        note_refusal();
      return {};
    }
    const received_frame frame = incoming_->frame(0);
    if (frame.from == nullptr)
      continue;
    datagram_reply reply;
    const bool from_server = is_server(*frame.from);
    if (from_server && frame.bytes.size() != options_.slot_size)
      other_size_ = frame.bytes.size();
    const bool right_size = frame.bytes.size() == options_.slot_size ||
                            (query_sender_ != nullptr && frame.bytes.size() >= sizeof(reply.header));
    if (!right_size || !from_server) {
      ++unexpected_;
      continue;
    }
    refused_ = false;
    std::memcpy(&reply.header, frame.bytes.data(), sizeof(reply.header));
    open_request &request = requests_[reply.header.request_id & (options_.window - 1)];
    if (reply.header.magic != CUDAQ_RPC_MAGIC_RESPONSE || request.attempts == 0 ||
        request.id != reply.header.request_id || reply.header.result_len > frame.bytes.size() - sizeof(reply.header)) {
      ++unexpected_;
      continue;
    }
    if (reply.header.status == CUDAQ_RPC_ERR_BUSY) {
      ++busy_;
      if (options_.retry_after.count() != 0)
        continue;
    }
    reply.result = frame.bytes.subspan(sizeof(reply.header), reply.header.result_len);
    reply.attempts = request.attempts;
    request.attempts = 0;
    --open_;
    return reply;
  }
  return {};
}

std::optional<datagram_reply> datagram_client::receive_within(std::chrono::nanoseconds time) {
  const clock::time_point deadline = clock::now() + time;
  for (;;) {
    if (std::optional<datagram_reply> reply = receive())
      return reply;
    const clock::time_point now = clock::now();
    if (now >= deadline)
      return {};
    repeat_due();
    std::chrono::nanoseconds wait = deadline - now;
    if (options_.retry_after.count() != 0)
      wait = std::min(wait, options_.retry_after);
    socket_.wait(true, wait);
  }
}

std::uint32_t datagram_client::repeat_due() {
  if (options_.retry_after.count() == 0 || open_ == 0)
    return 0;
  const clock::time_point now = clock::now();
  if (now < next_look_)
    return 0;
  next_look_ = now + options_.retry_after / 4;
  std::uint32_t n = 0;
  for (std::uint32_t place = 0; place < requests_.size(); ++place) {
    const open_request &request = requests_[place];
    if (request.attempts == 0 || now - request.sent_at < options_.retry_after ||
        now - request.first_sent_at > options_.retry_for)
      continue;
    transmit(place);
    ++n;
  }
  repeated_ += n;
  return n;
}

void datagram_client::give_up(std::uint32_t id) {
  open_request &request = requests_[id & (options_.window - 1)];
  if (request.attempts == 0 || request.id != id)
    return;
  request.attempts = 0;
  --open_;
}

} // namespace cudaq::realtime::detail
