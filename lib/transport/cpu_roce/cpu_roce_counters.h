// SPDX-License-Identifier: Apache-2.0
// What the provider counts; cpu_roce_provider.h describes each number. Any thread reads. The thread that
// connects peers counts callers_refused and callers_delayed; the others are counted under the exchange's mutex.
#pragma once

#include "cudaq/realtime/daemon/bridge/cpu_roce_provider.h"
#include "cudaq/realtime/detail/base/shared_word.h"

namespace cudaq::realtime::detail {

struct cpu_roce_counters {
  counter received, accepted, replied;
  counter dropped_immediate, dropped_short, dropped_long, answered_truncated, answered_busy;
  counter overwritten, unanswered, orphaned, refusals_dropped, peers, peers_lost;
  counter callers_refused, callers_delayed;
  shared_word<std::uint64_t> newest_address;

  void read(cudaq_cpu_roce_statistics_t &out) const {
    out.received = received.value();
    out.accepted = accepted.value();
    out.replied = replied.value();
    out.dropped_immediate = dropped_immediate.value();
    out.dropped_short = dropped_short.value();
    out.dropped_long = dropped_long.value();
    out.answered_truncated = answered_truncated.value();
    out.answered_busy = answered_busy.value();
    out.overwritten = overwritten.value();
    out.unanswered = unanswered.value();
    out.orphaned = orphaned.value();
    out.refusals_dropped = refusals_dropped.value();
    out.peers = peers.value();
    out.peers_lost = peers_lost.value();
    out.callers_refused = callers_refused.value();
    out.callers_delayed = callers_delayed.value();
    out.newest_address = newest_address.load();
  }
};

} // namespace cudaq::realtime::detail
