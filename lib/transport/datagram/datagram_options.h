// SPDX-License-Identifier: Apache-2.0
// The options that all providers over datagrams have. docs/transport/transport_udp.md describes them.
#pragma once

#include "lib/transport/provider/option_parser.h"

namespace cudaq::realtime::detail {

/// Most payload bytes of a UDP datagram over IPv4.
inline constexpr std::uint32_t kLargestDatagram = 65507;

struct datagram_options {
  std::string provider = "udp"; ///< its name
  std::string bind_address = "127.0.0.1";
  std::uint32_t port = 0; ///< 0: the system chooses one
  std::uint32_t num_slots = 8;
  std::uint32_t slot_size = 256; ///< most bytes of a frame
  bool pinned_rings = false;
  bool unified = false;
  bool busy_reply = false;
  std::uint32_t replay_window = 0; ///< request ids that are remembered for each peer, a power of two; 0: none
  std::uint32_t max_peers = 64;    ///< that are remembered
  std::uint64_t peer_timeout_ms = 60000;
  std::uint64_t busy_poll_us = 50;
  int core = CUDAQ_CORE_ANY;
  std::uint32_t receive_buffer = 0; ///< bytes; 0: the system's default
  std::string ignored_words;        ///< of option_parser

  std::string thread_name() const { return "cudaq-" + provider; }
};

/// Reads the options that all have, and those that a provider adds.
class option_reader : public option_parser {
public:
  /// `with_peers`: the provider remembers peers also without a replay window.
  option_reader(datagram_options &out, bool with_peers);
  expected<> read(int argc, char *const *argv);

private:
  expected<> check() const;

  datagram_options &out_;
  const bool with_peers_;
};

} // namespace cudaq::realtime::detail
