// SPDX-License-Identifier: Apache-2.0
// A packet of RoCEv2, transport UC (unreliable connection), as the payload of a UDP datagram. Numbers are big-endian.
// docs/transport/roce.md has the layout. No function here makes a system call or reads outside of its arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cudaq::realtime::detail {

inline constexpr std::uint16_t kRocePort = 4791;
inline constexpr std::uint32_t kBthBytes = 12, kRethBytes = 16, kImmediateBytes = 4, kIcrcBytes = 4;
inline constexpr std::uint32_t kMaxHeaderBytes = kBthBytes + kRethBytes + kImmediateBytes;
inline constexpr std::uint32_t kLargestMtu = 4096;
/// Most bytes of a datagram: headers, a payload of the largest MTU, which needs no padding, and the ICRC.
inline constexpr std::uint32_t kLargestPacket = kMaxHeaderBytes + kLargestMtu + kIcrcBytes;
inline constexpr std::uint32_t kDefaultPkey = 0xFFFF;
inline constexpr std::uint32_t k24Bits = 0xFFFFFF; ///< queue pair numbers and packet sequence numbers

enum class uc_opcode : std::uint8_t {
  send_first = 0x20,
  send_middle = 0x21,
  send_last = 0x22,
  send_last_immediate = 0x23,
  send_only = 0x24,
  send_only_immediate = 0x25,
  write_first = 0x26,
  write_middle = 0x27,
  write_last = 0x28,
  write_last_immediate = 0x29,
  write_only = 0x2A,
  write_only_immediate = 0x2B,
};

constexpr bool is_write(uc_opcode op) { return op >= uc_opcode::write_first; }
/// The place of the packet in its message.
constexpr bool begins(uc_opcode op) {
  return op == uc_opcode::send_first || op == uc_opcode::write_first || op == uc_opcode::send_only ||
         op == uc_opcode::send_only_immediate || op >= uc_opcode::write_only;
}
constexpr bool ends(uc_opcode op) {
  return !(op == uc_opcode::send_first || op == uc_opcode::send_middle || op == uc_opcode::write_first ||
           op == uc_opcode::write_middle);
}
constexpr bool has_reth(uc_opcode op) { return is_write(op) && begins(op); }
constexpr bool has_immediate(uc_opcode op) {
  return op == uc_opcode::send_last_immediate || op == uc_opcode::send_only_immediate ||
         op == uc_opcode::write_last_immediate || op == uc_opcode::write_only_immediate;
}

struct roce_packet {
  uc_opcode opcode = uc_opcode::send_only;
  bool solicited = false;
  std::uint16_t pkey = kDefaultPkey;
  std::uint32_t qp = 0;  ///< of the receiver
  std::uint32_t psn = 0; ///< packet sequence number
  // Of the first or only packet of a write.
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0; ///< of the whole message
  std::uint32_t immediate = 0;
  std::span<const std::uint8_t> payload; ///< without the padding
};

enum class packet_finding {
  good,
  too_short, ///< no room for the headers, the padding and the ICRC
  opcode,    ///< not of UC
  version,   ///< another version of the header, or reserved bits that are not 0
  padding,   ///< the datagram is no multiple of 4 bytes
};

/// Reads a datagram. The ICRC is not checked. `out` is only complete if the packet is good.
packet_finding read_roce_packet(std::span<const std::uint8_t> datagram, roce_packet &out);

/// Writes a datagram whose ICRC is missing: its last kIcrcBytes bytes are not written. Returns its length. `to` has
/// room for kMaxHeaderBytes + the payload + 3 + kIcrcBytes.
std::size_t write_roce_packet(const roce_packet &packet, std::uint8_t *to);

constexpr std::uint32_t big_endian_32(const std::uint8_t *p) {
  return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | p[3];
}
constexpr void put_big_endian_32(std::uint8_t *p, std::uint32_t value) {
  for (int i = 0; i < 4; ++i)
    p[i] = static_cast<std::uint8_t>(value >> (24 - 8 * i));
}

} // namespace cudaq::realtime::detail
