// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/uc_receiver.h"

#include <algorithm>

namespace cudaq::realtime::detail {
namespace {

constexpr std::uint32_t kPageOfImmediate = 0xFFF; // the bits above are the sensor bridge's own
constexpr std::uint32_t kHalfOfAllNumbers = (k24Bits + 1) / 2;

} // namespace

uc_receiver::uc_receiver(const uc_limits &limits, std::uint32_t max_peers, roce_counters &counters)
    : limits_(limits), counters_(counters), flows_(max_peers),
      buffers_(new std::uint8_t[std::size_t{max_peers} * limits.page_bytes]) {} // not touched: no memory until used

uc_receiver::message uc_receiver::part() {
  counters_.parts.bump();
  return {};
}

uc_receiver::message uc_receiver::done(std::span<const std::uint8_t> bytes) {
  counters_.messages.bump();
  return {true, bytes};
}

uc_receiver::message uc_receiver::refuse(flow &f, counter &reason) {
  reason.bump();
  give_up(f);
  return {};
}

void uc_receiver::give_up(flow &f) {
  if (f.open != kind::none || f.page_open)
    counters_.messages_broken.bump();
  f.open = kind::none;
  f.page_open = false;
}

/// Whether the packet has the number that it must have. A packet that begins something may have any number.
bool uc_receiver::follows(flow &f, const roce_packet &packet) {
  const bool begins_page = has_reth(packet.opcode) && packet.length != 0 && packet.address % limits_.page_bytes == 0;
  const bool free = begins_page || (begins(packet.opcode) && !is_write(packet.opcode));
  const std::uint32_t ahead = (packet.psn - f.next_psn) & k24Bits;
  const bool late = f.known && ahead >= kHalfOfAllNumbers;
  if (late)
    counters_.packets_late.bump();
  else if (f.known)
    counters_.packets_lost.bump(ahead);
  if (late && !free) { // the open message goes on with the next packet
    counters_.dropped_sequence.bump();
    return false;
  }
  const bool next = f.known && ahead == 0;
  f.known = true;
  f.next_psn = (packet.psn + 1) & k24Bits;
  if (next)
    return true;
  if (free) {
    give_up(f); // the open message may lack a packet, and its next one would seem to follow
    return true;
  }
  refuse(f, counters_.dropped_sequence);
  return false;
}

uc_receiver::message uc_receiver::receive(std::uint32_t peer, const roce_packet &packet) {
  flow &f = flows_[peer];
  if (!follows(f, packet))
    return {};
  if (begins(packet.opcode) && f.open != kind::none)
    give_up(f);
  return is_write(packet.opcode) ? receive_write(peer, f, packet) : receive_send(peer, f, packet);
}

uc_receiver::message uc_receiver::receive_send(std::uint32_t peer, flow &f, const roce_packet &packet) {
  const bool first = begins(packet.opcode), last = ends(packet.opcode);
  const std::size_t size = packet.payload.size();
  if (first && last) // leaves an open page as it is
    return size > std::min(limits_.mtu, limits_.page_bytes) ? refuse(f, counters_.dropped_length)
                                                            : done(packet.payload);
  if (first) {
    give_up(f);
    f.open = kind::send;
    f.at = f.end = 0;
  } else if (f.open != kind::send) {
    return refuse(f, counters_.dropped_sequence);
  }
  const bool fits = last ? size != 0 && size <= limits_.mtu : size == limits_.mtu;
  if (!fits || size > limits_.page_bytes - f.at)
    return refuse(f, counters_.dropped_length);
  append(peer, f, packet.payload);
  if (!last)
    return part();
  f.open = kind::none;
  return done({buffer(peer), f.end});
}

counter *uc_receiver::place_write(flow &f, const roce_packet &packet) {
  const std::size_t size = packet.payload.size();
  const bool only = ends(packet.opcode);
  if (only ? size != packet.length || size > limits_.mtu : size != limits_.mtu || packet.length <= limits_.mtu)
    return &counters_.dropped_length;
  if (packet.length != 0) { // otherwise the adapter looks at neither rkey nor address
    if (packet.rkey != limits_.rkey)
      return &counters_.dropped_rkey;
    const std::uint64_t page = packet.address / limits_.page_bytes, offset = packet.address % limits_.page_bytes;
    if (page >= limits_.num_pages || packet.length > limits_.page_bytes - offset)
      return &counters_.dropped_address;
    if (offset == 0) {
      give_up(f);
      f.page_open = true;
      f.page = static_cast<std::uint32_t>(page);
      f.end = 0;
    } else if (!f.page_open || page != f.page) {
      return &counters_.dropped_sequence;
    }
    f.at = static_cast<std::uint32_t>(offset);
  } else if (!f.page_open && has_immediate(packet.opcode)) {
    return &counters_.dropped_sequence;
  }
  f.left = packet.length;
  f.open = kind::write;
  return nullptr;
}

uc_receiver::message uc_receiver::receive_write(std::uint32_t peer, flow &f, const roce_packet &packet) {
  const std::size_t size = packet.payload.size();
  const bool last = ends(packet.opcode);
  if (begins(packet.opcode)) {
    if (counter *const reason = place_write(f, packet))
      return refuse(f, *reason);
  } else if (f.open != kind::write) {
    return refuse(f, counters_.dropped_sequence);
  } else if (last ? size != f.left || size > limits_.mtu : size != limits_.mtu || size >= f.left) {
    return refuse(f, counters_.dropped_length);
  }
  const bool completes = has_immediate(packet.opcode);
  if (completes && (packet.immediate & kPageOfImmediate) != f.page)
    return refuse(f, counters_.dropped_immediate);
  f.left -= static_cast<std::uint32_t>(size);
  if (last)
    f.open = kind::none;
  if (completes && f.end == 0) { // the only packet of the page need not be copied
    f.page_open = false;
    return done(packet.payload);
  }
  append(peer, f, packet.payload);
  if (!completes)
    return part();
  f.page_open = false;
  return done({buffer(peer), f.end});
}

void uc_receiver::append(std::uint32_t peer, flow &f, std::span<const std::uint8_t> payload) {
  std::uint8_t *const to = buffer(peer);
  if (f.at > f.end) // bytes of an earlier message
    std::fill(to + f.end, to + f.at, std::uint8_t{0});
  std::copy(payload.begin(), payload.end(), to + f.at);
  f.at += static_cast<std::uint32_t>(payload.size());
  f.end = std::max(f.end, f.at);
}

} // namespace cudaq::realtime::detail
