// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/datagram_client.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace cudaq::realtime::detail {

using clock = std::chrono::steady_clock;
constexpr std::size_t kLargestDatagram = 65536;

namespace {
std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}
} // namespace

expected<> datagram_client::open(const datagram_client_options &options, std::unique_ptr<datagram_wire> wire) {
  if (options.window == 0 || (options.window & (options.window - 1)) != 0)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "window %u: a power of two is accepted", options.window);
  if (options.slot_size < CUDAQ_RPC_HEADER_SIZE)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "slot_size %u: at least %u", options.slot_size, CUDAQ_RPC_HEADER_SIZE);
  options_ = options;
  wire_ = std::move(wire);
  incoming_ = wire_->make_receiver();
  outgoing_ = wire_->make_sender();
  const bool repeats = options.retry_after.count() != 0;
  const auto after = static_cast<std::uint64_t>(options.retry_after.count());
  requests_.emplace(options.window, options.slot_size,
                    repeats ? repeat_rules{after, static_cast<std::uint64_t>(options.retry_for.count()), true}
                            : repeat_rules{});
  // Linux reports at most one refusal a second of another machine.
  const auto ns = [](std::chrono::nanoseconds time) { return static_cast<std::uint64_t>(time.count()); };
  absence_.emplace(std::max(ns(std::chrono::seconds(2)), 2 * after), repeats ? ns(kMaxRefusedTime) : 0);
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

/// Without repetitions no time is needed.
std::uint64_t datagram_client::now_if_repeated() const { return options_.retry_after.count() != 0 ? now_ns() : 0; }

bool datagram_client::send(std::uint32_t id, std::uint32_t function_id, std::span<const std::uint8_t> payload,
                           std::uint64_t ptp_timestamp) {
  const cudaq_rpc_header_t header = {CUDAQ_RPC_MAGIC_REQUEST, function_id, static_cast<std::uint32_t>(payload.size()),
                                     id, ptp_timestamp};
  const std::optional<std::uint32_t> place = requests_->begin(header, payload);
  if (place)
    transmit(*place, now_if_repeated());
  return place.has_value();
}

void datagram_client::transmit(std::uint32_t place, std::uint64_t now) {
  requests_->mark_sent(place, now);
  // An error is the same as a lost datagram: a server that does not run refuses, and may run later. The report of an
  // earlier refusal takes the place of a datagram, which is therefore sent again.
  frame_sender &sender = query_sender_ != nullptr ? *query_sender_ : *outgoing_;
  for (bool again = true; again;) {
    sender.add(server_, requests_->frame(place));
    const bool port_unreachable = sender.flush(socket_).port_unreachable;
    again = port_unreachable && !absence_->any();
    if (port_unreachable)
      absence_->refused(now_ns());
  }
}

void datagram_client::probe() {
  if (options_.reports_refusals && ::send(socket_.fd(), nullptr, 0, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
      errno == ECONNREFUSED)
    absence_->refused(now_ns());
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
        absence_->refused(now_ns());
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
    absence_->answered();
    std::memcpy(&reply.header, frame.bytes.data(), sizeof(reply.header));
    const std::span<const std::uint8_t> payload = frame.bytes.subspan(sizeof(reply.header));
    const open_requests::result taken = reply.header.result_len > payload.size()
                                            ? open_requests::result{}
                                            : requests_->handle(reply.header, now_if_repeated());
    unexpected_ += taken.means == open_requests::meaning::stray ? 1 : 0;
    if (taken.means != open_requests::meaning::final)
      continue;
    reply.result = payload.first(reply.header.result_len);
    reply.attempts = taken.attempts;
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
  if (options_.retry_after.count() == 0)
    return 0;
  const std::uint64_t now = now_ns();
  std::uint32_t n = 0;
  for (; const std::optional<std::uint32_t> place = requests_->due(now); ++n)
    transmit(*place, now);
  return n;
}

void datagram_client::give_up(std::uint32_t id) { (void)requests_->give_up(id); }

} // namespace cudaq::realtime::detail
