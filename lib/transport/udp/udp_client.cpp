// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/udp/udp_client.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace cudaq::realtime::detail {

using clock = std::chrono::steady_clock;

status_or_reason udp_client::open(const udp_client_options &options) {
  if (options.window == 0 || (options.window & (options.window - 1)) != 0)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "window %u: a power of two is accepted", options.window);
  if (options.slot_size < CUDAQ_RPC_HEADER_SIZE)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "slot_size %u: at least %u", options.slot_size, CUDAQ_RPC_HEADER_SIZE);
  options_ = options;
  udp_address peer;
  if (status_or_reason refused = udp_address_of("address", options.address, options.port, peer))
    return refused;
  udp_address local = peer; // any port of any address of the same family
  std::memset(&local.bytes, 0, sizeof(local.bytes));
  local.get()->sa_family = peer.get()->sa_family;
  if (status_or_reason refused = socket_.open(local, options.receive_buffer))
    return refused;
  requests_.resize(options.window);
  frames_.resize(std::size_t{options.window} * options.slot_size);
  reply_.resize(options.slot_size);
  return socket_.connect(peer);
}

bool udp_client::send(std::uint32_t id, std::uint32_t function_id, std::span<const std::uint8_t> payload,
                      std::uint64_t ptp_timestamp) {
  const std::uint32_t place = id & (options_.window - 1);
  open_request &request = requests_[place];
  if (request.attempts != 0 || payload.size() > options_.slot_size - CUDAQ_RPC_HEADER_SIZE)
    return false;
  request = {id, 0, {}};
  const cudaq_rpc_header_t header = {CUDAQ_RPC_MAGIC_REQUEST, function_id, static_cast<std::uint32_t>(payload.size()),
                                     id, ptp_timestamp};
  std::uint8_t *const frame = frame_of(place);
  std::memcpy(frame, &header, sizeof(header));
  std::copy(payload.begin(), payload.end(), frame + sizeof(header));
  std::fill(frame + sizeof(header) + payload.size(), frame + options_.slot_size, std::uint8_t{0});
  ++open_;
  transmit(place);
  return true;
}

void udp_client::transmit(std::uint32_t place) {
  open_request &request = requests_[place];
  ++request.attempts;
  if (options_.retry_after.count() != 0)
    request.sent_at = clock::now();
  // An error is the same as a lost datagram: a server that does not run refuses, and may run later.
  ::send(socket_.fd(), frame_of(place), options_.slot_size, MSG_NOSIGNAL);
}

std::optional<udp_reply> udp_client::receive() {
  for (;;) {
    const ssize_t n = ::recv(socket_.fd(), reply_.data(), reply_.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0) {
      if (errno == EINTR || errno == ECONNREFUSED) // the latter reports an earlier send
        continue;
      return {};
    }
    udp_reply reply;
    if (static_cast<std::size_t>(n) != reply_.size()) {
      ++unexpected_;
      continue;
    }
    std::memcpy(&reply.header, reply_.data(), sizeof(reply.header));
    open_request &request = requests_[reply.header.request_id & (options_.window - 1)];
    if (reply.header.magic != CUDAQ_RPC_MAGIC_RESPONSE || request.attempts == 0 ||
        request.id != reply.header.request_id || reply.header.result_len > reply_.size() - sizeof(reply.header)) {
      ++unexpected_;
      continue;
    }
    if (reply.header.status == CUDAQ_RPC_ERR_BUSY) {
      ++busy_;
      if (options_.retry_after.count() != 0)
        continue;
    }
    reply.result = {reply_.data() + sizeof(reply.header), reply.header.result_len};
    reply.attempts = request.attempts;
    request.attempts = 0;
    --open_;
    return reply;
  }
}

std::optional<udp_reply> udp_client::receive_within(std::chrono::nanoseconds time) {
  const clock::time_point deadline = clock::now() + time;
  for (;;) {
    if (std::optional<udp_reply> reply = receive())
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

std::uint32_t udp_client::repeat_due() {
  if (options_.retry_after.count() == 0 || open_ == 0)
    return 0;
  const clock::time_point now = clock::now();
  if (now < next_look_)
    return 0;
  next_look_ = now + options_.retry_after / 4;
  std::uint32_t n = 0;
  for (std::uint32_t place = 0; place < requests_.size(); ++place) {
    if (requests_[place].attempts == 0 || now - requests_[place].sent_at < options_.retry_after)
      continue;
    transmit(place);
    ++n;
  }
  repeated_ += n;
  return n;
}

void udp_client::give_up(std::uint32_t id) {
  open_request &request = requests_[id & (options_.window - 1)];
  if (request.attempts == 0 || request.id != id)
    return;
  request.attempts = 0;
  --open_;
}

} // namespace cudaq::realtime::detail
