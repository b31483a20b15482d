// SPDX-License-Identifier: Apache-2.0
// The options of the udp provider. docs/transport/transport_udp.md describes them.
#pragma once

#include "lib/base/error_text.h"

#include <cstdint>
#include <string>

namespace cudaq::realtime::detail {

/// Most payload bytes of a UDP datagram over IPv4.
inline constexpr std::uint32_t kLargestDatagram = 65507;

struct udp_options {
  std::string bind_address = "127.0.0.1";
  std::uint32_t port = 0; ///< 0: the system chooses one
  std::uint32_t num_slots = 8;
  std::uint32_t slot_size = 256; ///< bytes of each datagram that is sent, and most bytes of one that is accepted
  bool pinned_rings = false;
  bool unified = false;
  bool busy_reply = false;
  std::uint32_t replay_window = 0; ///< request ids that are remembered for each peer, a power of two; 0: none
  std::uint32_t max_peers = 64;    ///< with a replay window
  std::uint64_t peer_timeout_ms = 60000;
  std::uint64_t busy_poll_us = 50;
  int core = CUDAQ_CORE_ANY;
  std::uint32_t receive_buffer = 0; ///< bytes; 0: the system's default
};

/// Parses `--name value` and `--name=value`. An unknown option is refused, or ignored if --lenient is among them. The
/// reason names the option, its value, and what is accepted; `out` is then unspecified.
status_or_reason parse_udp_options(int argc, char *const *argv, udp_options &out);

} // namespace cudaq::realtime::detail
