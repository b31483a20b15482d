// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/roce_icrc.h"

#include "lib/transport/roce/roce_packet.h"

#include <array>
#include <cstring>

namespace cudaq::realtime::detail {
namespace {

// CRC-32 as in Ethernet and zlib, bits reflected. Own code, because no library computes it backwards.
constexpr std::uint32_t kPolynomial = 0xEDB88320u;

struct crc_tables {
  std::array<std::array<std::uint32_t, 256>, 8> ahead{}; ///< [k][byte]: a byte, then k zero bytes
  std::array<std::uint8_t, 256> back{};                  ///< the byte whose ahead[0] has this high byte

  constexpr crc_tables() {
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint32_t crc = byte;
      for (int bit = 0; bit < 8; ++bit)
        crc = crc >> 1 ^ ((crc & 1) != 0 ? kPolynomial : 0);
      ahead[0][byte] = crc;
      back[crc >> 24] = static_cast<std::uint8_t>(byte);
    }
    for (std::size_t k = 1; k < ahead.size(); ++k)
      for (std::uint32_t byte = 0; byte < 256; ++byte)
        ahead[k][byte] = ahead[k - 1][byte] >> 8 ^ ahead[0][ahead[k - 1][byte] & 0xFF];
  }
};
constexpr crc_tables kTables;

std::uint32_t little_endian_32(const std::uint8_t *p) {
  return p[0] | std::uint32_t{p[1]} << 8 | std::uint32_t{p[2]} << 16 | std::uint32_t{p[3]} << 24;
}

/// The state of the CRC after these bytes; 8 of them in each step ("slicing by 8": M. Kounavis, F. Berry, 2005).
std::uint32_t crc_after(std::uint32_t state, std::span<const std::uint8_t> bytes) {
  const auto &t = kTables.ahead;
  while (bytes.size() >= 8) {
    const std::uint32_t low = state ^ little_endian_32(bytes.data());
    const std::uint32_t high = little_endian_32(bytes.data() + 4);
    state = t[7][low & 0xFF] ^ t[6][low >> 8 & 0xFF] ^ t[5][low >> 16 & 0xFF] ^ t[4][low >> 24] ^ t[3][high & 0xFF] ^
            t[2][high >> 8 & 0xFF] ^ t[1][high >> 16 & 0xFF] ^ t[0][high >> 24];
    bytes = bytes.subspan(8);
  }
  for (const std::uint8_t byte : bytes)
    state = state >> 8 ^ t[0][(state ^ byte) & 0xFF];
  return state;
}

/// The state from which `zeros` zero bytes lead to this one.
std::uint32_t crc_before(std::uint32_t state, std::size_t zeros) {
  for (; zeros != 0; --zeros) {
    const std::uint8_t byte = kTables.back[state >> 24];
    state = (state ^ kTables.ahead[0][byte]) << 8 | byte;
  }
  return state;
}

/// The bytes that the checksum takes before the packet: 8 bytes of ones in place of the header of InfiniBand, the IPv4
/// header, the UDP header.
constexpr std::size_t kIpAt = 8, kIdentificationAt = kIpAt + 4, kUdpAt = kIpAt + 20, kPrefixBytes = kUdpAt + 8;
using prefix = std::array<std::uint8_t, kPrefixBytes>;

prefix prefix_of(const roce_path &path, std::size_t datagram_bytes) {
  constexpr std::uint16_t kUdpBytes = 8, kIpBytes = 20;
  prefix p;
  p.fill(0xFF);
  const auto put_16 = [&p](std::size_t at, std::size_t value) {
    p[at] = static_cast<std::uint8_t>(value >> 8);
    p[at + 1] = static_cast<std::uint8_t>(value);
  };
  p[kIpAt] = 0x45; // version 4, no options
  put_16(kIpAt + 2, kIpBytes + kUdpBytes + datagram_bytes);
  put_16(kIdentificationAt, 0);
  put_16(kIpAt + 6, 0x4000); // do not fragment
  p[kIpAt + 9] = IPPROTO_UDP;
  const in_addr_t from = path.source.v4(), to = path.destination.v4();
  std::memcpy(&p[kIpAt + 12], &from, sizeof(from));
  std::memcpy(&p[kIpAt + 16], &to, sizeof(to));
  put_16(kUdpAt, path.source.port());
  put_16(kUdpAt + 2, path.destination.port());
  put_16(kUdpAt + 4, kUdpBytes + datagram_bytes);
  return p;
}

std::span<const std::uint8_t> without_icrc(std::span<const std::uint8_t> datagram) {
  return datagram.first(datagram.size() - kIcrcBytes);
}

} // namespace

std::uint32_t icrc_of(const roce_path &path, std::span<const std::uint8_t> datagram) {
  std::array<std::uint8_t, kBthBytes> bth;
  std::memcpy(bth.data(), datagram.data(), bth.size());
  bth[4] = 0xFF;
  std::uint32_t state = crc_after(0xFFFFFFFFu, prefix_of(path, datagram.size()));
  state = crc_after(state, bth);
  return ~crc_after(state, without_icrc(datagram).subspan(kBthBytes));
}

void seal_with_icrc(const roce_path &path, std::span<std::uint8_t> datagram) {
  const std::uint32_t icrc = icrc_of(path, datagram);
  std::uint8_t *const to = datagram.data() + datagram.size() - kIcrcBytes;
  for (std::uint32_t i = 0; i < kIcrcBytes; ++i)
    to[i] = static_cast<std::uint8_t>(icrc >> (8 * i));
}

icrc_finding check_icrc(const roce_path &path, std::span<const std::uint8_t> datagram) {
  const std::uint32_t found = little_endian_32(datagram.data() + datagram.size() - kIcrcBytes);
  // The difference of two CRCs over equally long data is the CRC, from 0, of the difference of the data.
  const std::uint32_t difference = found ^ icrc_of(path, datagram);
  if (difference == 0)
    return icrc_finding::verified;
  const std::size_t after_identification = kPrefixBytes - kIdentificationAt + datagram.size() - kIcrcBytes;
  const std::uint32_t differing_bytes = crc_before(difference, after_identification); // the first one is the lowest
  const std::uint32_t flags = differing_bytes >> 16;
  return flags == 0 || flags == 0x40 ? icrc_finding::partly : icrc_finding::wrong;
}

} // namespace cudaq::realtime::detail
