// SPDX-License-Identifier: Apache-2.0
// The base transport header (BTH), by bytes:
//
//   0 opcode | 1 solicited:1 migration:1 padding:2 version:4 | 2,3 P_Key
//   4 FECN:1 BECN:1 reserved:6, changed by switches | 5,6,7 queue pair | 8 acknowledge:1 reserved:7 | 9,10,11 PSN
//
// then RETH (address 8, rkey 4, length 4), the immediate (4), the payload, 0 to 3 bytes of padding, and the ICRC (4).
#include "lib/transport/roce/roce_packet.h"

#include <cstring>

namespace cudaq::realtime::detail {
namespace {

constexpr std::uint8_t kSolicited = 0x80, kPaddingShift = 4, kVersionMask = 0x0F;

constexpr std::uint32_t header_bytes(uc_opcode op) {
  return kBthBytes + (has_reth(op) ? kRethBytes : 0) + (has_immediate(op) ? kImmediateBytes : 0);
}

} // namespace

packet_finding read_roce_packet(std::span<const std::uint8_t> datagram, roce_packet &out) {
  if (datagram.size() < kBthBytes + kIcrcBytes)
    return packet_finding::too_short;
  const std::uint8_t *const bth = datagram.data();
  if (bth[0] < static_cast<std::uint8_t>(uc_opcode::send_first) ||
      bth[0] > static_cast<std::uint8_t>(uc_opcode::write_only_immediate))
    return packet_finding::opcode;
  out.opcode = static_cast<uc_opcode>(bth[0]);
  if ((bth[1] & kVersionMask) != 0)
    return packet_finding::version;
  const std::size_t padding = bth[1] >> kPaddingShift & 3u;
  const std::size_t headers = header_bytes(out.opcode);
  if (datagram.size() < headers + padding + kIcrcBytes)
    return packet_finding::too_short;
  if (datagram.size() % 4 != 0)
    return packet_finding::padding;
  out.solicited = (bth[1] & kSolicited) != 0;
  out.pkey = static_cast<std::uint16_t>(bth[2] << 8 | bth[3]);
  out.qp = big_endian_32(bth + 4) & k24Bits;
  out.psn = big_endian_32(bth + 8) & k24Bits;
  const std::uint8_t *next = bth + kBthBytes;
  if (has_reth(out.opcode)) {
    out.address = std::uint64_t{big_endian_32(next)} << 32 | big_endian_32(next + 4);
    out.rkey = big_endian_32(next + 8);
    out.length = big_endian_32(next + 12);
    next += kRethBytes;
  }
  if (has_immediate(out.opcode))
    out.immediate = big_endian_32(next);
  out.payload = datagram.subspan(headers, datagram.size() - headers - padding - kIcrcBytes);
  return packet_finding::good;
}

std::size_t write_roce_packet(const roce_packet &packet, std::uint8_t *to) {
  const std::size_t padding = -packet.payload.size() & 3u;
  to[0] = static_cast<std::uint8_t>(packet.opcode);
  to[1] = static_cast<std::uint8_t>((packet.solicited ? kSolicited : 0) | padding << kPaddingShift);
  to[2] = static_cast<std::uint8_t>(packet.pkey >> 8);
  to[3] = static_cast<std::uint8_t>(packet.pkey);
  put_big_endian_32(to + 4, packet.qp & k24Bits);
  put_big_endian_32(to + 8, packet.psn & k24Bits);
  std::uint8_t *next = to + kBthBytes;
  if (has_reth(packet.opcode)) {
    put_big_endian_32(next, static_cast<std::uint32_t>(packet.address >> 32));
    put_big_endian_32(next + 4, static_cast<std::uint32_t>(packet.address));
    put_big_endian_32(next + 8, packet.rkey);
    put_big_endian_32(next + 12, packet.length);
    next += kRethBytes;
  }
  if (has_immediate(packet.opcode)) {
    put_big_endian_32(next, packet.immediate);
    next += kImmediateBytes;
  }
  if (!packet.payload.empty())
    std::memcpy(next, packet.payload.data(), packet.payload.size());
  std::memset(next + packet.payload.size(), 0, padding);
  return static_cast<std::size_t>(next - to) + packet.payload.size() + padding + kIcrcBytes;
}

} // namespace cudaq::realtime::detail
