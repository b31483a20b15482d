// SPDX-License-Identifier: Apache-2.0
// What a provider over datagrams counts. One thread counts, any thread reads; udp_provider.h describes each number.
#pragma once

#include "cudaq/realtime/daemon/bridge/udp_provider.h"
#include "cudaq/realtime/detail/base/shared_word.h"

namespace cudaq::realtime::detail {

struct datagram_counters {
  counter received, accepted, replied;
  counter dropped_magic, dropped_short, dropped_long, dropped_duplicates, dropped_peers, dropped_kernel;
  counter answered_truncated, answered_busy, answered_stale, answered_reused;
  counter replays, reordered, unanswered, send_errors, receive_errors, peers_expired;
  shared_word<std::uint64_t> peers;

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
  }
};

} // namespace cudaq::realtime::detail
