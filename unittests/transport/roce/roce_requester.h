// SPDX-License-Identifier: Apache-2.0
// Requesters of the roce provider, and a relay between them that seals packets anew.
#pragma once

#include "lib/transport/datagram/datagram_client.h"
#include "lib/transport/roce/roce_icrc.h"
#include "lib/transport/roce/roce_packet.h"
#include "lib/transport/roce/roce_wire.h"
#include "unittests/transport/datagram/lossy_relay.h"

namespace cudaq::realtime::test {

struct roce_requester {
  /// The server has these options, too.
  explicit roce_requester(std::uint32_t slot_size = 256, std::uint32_t num_slots = 8, std::uint32_t mtu = 4096) {
    wire.server = false;
    wire.slot_size = slot_size;
    wire.num_slots = num_slots;
    wire.mtu = mtu;
    wire.own_qp = detail::kRequesterQp;
    wire.peer_qp = detail::kServerQp;
    options.slot_size = slot_size;
    options.from_any_port = true;
    options.window = 32;
  }
  std::string open(std::uint32_t port) {
    options.port = port;
    return client.open(options, detail::make_roce_wire(wire, counters)).text();
  }

  detail::roce_wire_options wire;
  detail::datagram_client_options options;
  std::shared_ptr<detail::roce_counters> counters = std::make_shared<detail::roce_counters>();
  detail::datagram_client client;
};

/// A router changes addresses and ports, which the ICRC covers. A wrong one stays wrong.
inline void seal_anew(std::span<std::uint8_t> datagram, const relay_hop &arrived, const relay_hop &leaves) {
  if (datagram.size() < detail::kBthBytes + detail::kIcrcBytes)
    return;
  const bool right = detail::check_icrc({arrived.from, arrived.to}, datagram) == detail::icrc_finding::verified;
  detail::seal_with_icrc({leaves.from, leaves.to}, datagram);
  if (!right)
    datagram.back() ^= 0xFF;
}

} // namespace cudaq::realtime::test
