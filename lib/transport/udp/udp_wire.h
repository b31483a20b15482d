// SPDX-License-Identifier: Apache-2.0
// The wire of the udp provider: one datagram is one slot. docs/transport/transport_udp.md describes it.
#pragma once

#include "lib/transport/datagram/datagram_wire.h"

namespace cudaq::realtime::detail {

/// `slot_size`: bytes of each datagram that is sent, and most bytes of one that is received.
std::unique_ptr<datagram_wire> make_udp_wire(std::uint32_t slot_size);

} // namespace cudaq::realtime::detail
