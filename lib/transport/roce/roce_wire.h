// SPDX-License-Identifier: Apache-2.0
// Frames in packets of RoCEv2, transport UC. docs/transport/roce.md describes the wire.
//
// The two sides differ: a requester writes to pages of the server's memory, as a sensor bridge does, and the server
// answers by SEND. A socket sees neither the identification nor the flags of the IPv4 header: see roce_icrc.h.
#pragma once

#include "lib/transport/datagram/datagram_wire.h"
#include "lib/transport/roce/roce_counters.h"

#include <chrono>

namespace cudaq::realtime::detail {

enum class icrc_policy {
  check, ///< refuse a packet whose ICRC is wrong for each identification
  full,  ///< refuse a packet whose ICRC is wrong for identification 0
  off    ///< look at no ICRC
};

// Numbers that the provider and the client have by default.
inline constexpr std::uint32_t kServerQp = 0x11, kRequesterQp = 0x2, kServerRkey = 0x1234;

struct roce_wire_options {
  bool server = true;            ///< answers by SEND; otherwise requests by writes
  std::uint32_t slot_size = 256; ///< bytes of a page, and of each answer
  std::uint32_t num_slots = 8;   ///< pages of the server's memory
  std::uint32_t mtu = 4096;
  std::uint32_t own_qp = kServerQp;
  std::uint32_t peer_qp = kRequesterQp;
  std::uint32_t rkey = kServerRkey;
  std::uint32_t peer_port = 0; ///< UDP port to which packets are sent; 0: the one from which the peer sends
  std::uint32_t max_peers = 64;
  std::chrono::milliseconds peer_timeout{60000};
  icrc_policy icrc = icrc_policy::check;
};

std::unique_ptr<datagram_wire> make_roce_wire(const roce_wire_options &options,
                                              std::shared_ptr<roce_counters> counters);

/// The server's memory, as a requester writes it.
struct roce_server_memory {
  std::uint32_t page_bytes = 256, pages = 8;
  std::uint32_t qp = kServerQp, rkey = kServerRkey;
};
/// The wire of a requester that reads no counters of packets.
std::unique_ptr<datagram_wire> make_roce_requester_wire(const roce_server_memory &server, std::uint32_t mtu);

} // namespace cudaq::realtime::detail
