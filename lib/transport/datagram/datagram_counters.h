// SPDX-License-Identifier: Apache-2.0
// What a provider over datagrams counts. One thread counts, any thread reads; udp_provider.h describes each number.
#pragma once

#include "cudaq/realtime/daemon/bridge/udp_provider.h"
#include "cudaq/realtime/detail/base/shared_word.h"
#include "lib/transport/datagram/udp_address.h"

#include <cstring>

namespace cudaq::realtime::detail {

/// One thread writes, any thread reads.
class newest_peer {
public:
  void set(const udp_address &peer) {
    std::uint8_t address[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    if (const in_addr_t v4 = peer.v4(); peer.is_v4())
      std::memcpy(address + 12, &v4, sizeof(v4));
    else
      std::memcpy(address, &peer.bytes.sin6_addr, sizeof(address));
    std::uint64_t halves[2];
    std::memcpy(halves, address, sizeof(halves));
    changes_.store(changes_.peek() + 1); // odd: a reader that finds a word of this change finds another number then
    halves_[0].store(halves[0]);
    halves_[1].store(halves[1]);
    port_.store(peer.port());
    changes_.store(changes_.peek() + 1);
  }
  /// A read during a change gives nothing.
  void read(cudaq_udp_statistics_t &out) const {
    const std::uint64_t before = changes_.load(), halves[2] = {halves_[0].load(), halves_[1].load()},
                        port = port_.load();
    if (before % 2 != 0 || changes_.load() != before)
      return;
    std::memcpy(out.newest_address, halves, sizeof(halves));
    out.newest_port = port;
  }

private:
  shared_word<std::uint64_t> changes_, halves_[2], port_;
};

struct datagram_counters {
  counter received, accepted, replied;
  counter dropped_magic, dropped_short, dropped_long, dropped_duplicates, dropped_peers, dropped_kernel;
  counter answered_truncated, answered_busy, answered_stale, answered_reused;
  counter replays, reordered, unanswered, send_errors, receive_errors, peers_expired;
  shared_word<std::uint64_t> peers;
  newest_peer newest;

  void read(cudaq_udp_statistics_t &out) const {
    out.received = received.value();
    out.accepted = accepted.value();
    out.replied = replied.value();
    out.dropped_magic = dropped_magic.value();
    out.dropped_short = dropped_short.value();
    out.dropped_long = dropped_long.value();
    out.dropped_duplicates = dropped_duplicates.value();
    out.dropped_peers = dropped_peers.value();
    out.dropped_kernel = dropped_kernel.value();
    out.answered_truncated = answered_truncated.value();
    out.answered_busy = answered_busy.value();
    out.answered_stale = answered_stale.value();
    out.answered_reused = answered_reused.value();
    out.replays = replays.value();
    out.reordered = reordered.value();
    out.unanswered = unanswered.value();
    out.send_errors = send_errors.value();
    out.receive_errors = receive_errors.value();
    out.peers_expired = peers_expired.value();
    out.peers = peers.load();
    newest.read(out);
  }
};

} // namespace cudaq::realtime::detail
