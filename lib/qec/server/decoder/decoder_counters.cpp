// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/decoder/decoder_counters.h"

#include <algorithm>
#include <cstdio>

namespace cudaq::qec::realtime {

void decoder_counters::add_answer(wire_function function, const server_answer &answer) noexcept {
  by_status_[static_cast<std::size_t>(counted_status(function, answer.status))].add();
}

void decoder_counters::add_deadlines(const deadline_counts &before, const deadline_counts &after) noexcept {
  deadline_met_.bump(after.met - before.met);
  deadline_missed_.bump(after.missed - before.missed);
  deadline_late_.bump(after.late - before.late);
}

void decoder_counters::add_tail(clock::time_point arrival) noexcept {
  const std::uint64_t ns = ns_since(arrival);
  tail_ns_.bump(ns);
  worst_tail_ns_.store(std::max(ns, worst_tail_ns_.peek()));
}

void decoder_counters::set_stream(const stream_totals &now) noexcept {
  pushed_.store(now.pushed);
  committed_.store(now.committed);
  lag_.store(now.lag);
  worst_lag_.store(now.worst_lag);
  missing_tail_.store(now.missing_tail);
  add_deadlines({deadline_met_.value(), deadline_missed_.value(), deadline_late_.value()}, now.deadlines);
}

void decoder_counters::set_failures(std::uint64_t number, std::uint64_t not_converged, const char *last) noexcept {
  if (failures_ == number) // only this thread writes it
    return;
  const std::lock_guard<std::mutex> lock(failure_mutex_);
  failures_ = number;
  not_converged_ = not_converged;
  std::snprintf(last_failure_.data(), last_failure_.size(), "%s", last);
}

decode_failures decoder_counters::failures() const {
  const std::lock_guard<std::mutex> lock(failure_mutex_);
  return {failures_, not_converged_, last_failure_.data()};
}

decoder_counts decoder_counters::read() const noexcept {
  decoder_counts c;
  // What comes first is read last: so there are never more answers than requests, nor more final rounds than pushed.
  for (std::size_t i = 0; i < c.by_status.size(); ++i)
    c.by_status[i] = by_status_[i].value();
  c.shots = shots_.value();
  c.too_old = too_old_.value();
  c.exchanges = exchanges_.value();
  c.stream.committed = committed_.load();
  c.stream.pushed = pushed_.load();
  c.stream.lag = lag_.load();
  c.stream.worst_lag = worst_lag_.load();
  c.tail_ns = tail_ns_.value();
  c.worst_tail_ns = worst_tail_ns_.load();
  c.deadlines = {deadline_met_.value(), deadline_missed_.value(), deadline_late_.value()};
  c.repeated = repeated_.value();
  c.padded = padded_.value();
  c.requests = requests_.value();
  return c;
}

} // namespace cudaq::qec::realtime
