// SPDX-License-Identifier: Apache-2.0
// The requests of a run one by one, and the run as a file that Perfetto and chrome://tracing show.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// Times of one request, in ns of CLOCK_MONOTONIC; 0: not known. `accepted` is written by the thread that sends, the
/// rest by the thread that collects.
struct traced_request {
  std::uint64_t sent = 0;                ///< before the frame was written
  std::uint64_t accepted = 0;            ///< the request is in the ring
  std::uint64_t begin = 0, end = 0;      ///< of the work on it
  std::uint64_t seen = 0, collected = 0; ///< its answer was seen; it was checked
  std::uint32_t slot = 0;
  std::uint32_t worker = 0; ///< number of the thread that did the work
};

/// Room for the first requests of a run, which is taken before the run. Used by the two client threads.
class run_trace {
public:
  static constexpr std::uint64_t kMaxRequests = 100'000;

  /// `requests`: expected; 0: not known.
  explicit run_trace(std::uint64_t requests)
      : requests_(static_cast<std::size_t>(requests == 0 ? kMaxRequests : std::min(requests, kMaxRequests))) {}

  /// NULL: there is no room.
  [[nodiscard]] traced_request *at(std::uint64_t number) noexcept {
    return number < requests_.size() ? &requests_[static_cast<std::size_t>(number)] : nullptr;
  }
  /// After the run.
  [[nodiscard]] const std::vector<traced_request> &requests() const noexcept { return requests_; }

private:
  std::vector<traced_request> requests_;
};

/// The names of a run's tracks, and of the parts of a request.
struct trace_names {
  std::string run;       ///< "pass 1"
  std::string sender;    ///< the thread that sends
  std::string collector; ///< the thread that collects; the same name: it is the same thread
  std::string worker;    ///< the threads that work get numbers: "worker 0"; if there is one only, it has this name
  std::string parts[3];  ///< of a request, from one of `sent`, `begin`, `end`, `seen` to the next
};

/// One run of a trace.
struct traced_run {
  trace_names names;
  const run_trace *trace;
};

/// Writes the trace: a process for each run; in it a track for each thread and each slot. A request is a range on the
/// track of its slot, with its parts in it, and on the tracks of the threads while they were busy with it. A request
/// without an answer is left out. Times are in us since the first request, with three decimals; events are in
/// the order of their times, and an outer one is before an inner one.
void write_trace(std::ostream &file, const std::vector<traced_run> &runs);

} // namespace cudaq::realtime::tools
