// SPDX-License-Identifier: Apache-2.0
// The invariant CRC (ICRC), the last 4 bytes of each RoCEv2 packet: CRC-32 over the IPv4 header, the UDP header, and
// the packet up to the ICRC. Fields that a router may change count as ones: type of service, time to live, both
// checksums, and byte 4 of the BTH.
//
// A UDP socket does not tell the identification and the flags of the IPv4 header of a datagram, and the ICRC covers
// them. A sender that sets the flag "do not fragment" may leave the identification 0, as Linux does for a socket that
// is not connected. So a packet is checked in full if it has identification 0 and this flag. If it has not, the CRC
// still says which 4 bytes these must have been, because a CRC can be computed backwards: no more than 2^17 of the 2^32
// values are an identification with legal flags, so a wrong packet passes with a chance of 1 in 32768.
#pragma once

#include "lib/transport/datagram/udp_address.h"

#include <cstdint>
#include <span>

namespace cudaq::realtime::detail {

/// Addresses and ports of a datagram over IPv4.
struct roce_path {
  udp_address source, destination;
};

/// The ICRC of a datagram with identification 0 and "do not fragment", as it stands in the packet (little-endian). The
/// last 4 bytes of `datagram` are the place of the ICRC, and are not read.
std::uint32_t icrc_of(const roce_path &path, std::span<const std::uint8_t> datagram);
/// Writes it to its place.
void seal_with_icrc(const roce_path &path, std::span<std::uint8_t> datagram);

enum class icrc_finding {
  verified, ///< for identification 0 and "do not fragment"
  partly,   ///< for another identification, or a packet that may be fragmented
  wrong
};

/// At least kBthBytes + kIcrcBytes bytes.
icrc_finding check_icrc(const roce_path &path, std::span<const std::uint8_t> datagram);

} // namespace cudaq::realtime::detail
