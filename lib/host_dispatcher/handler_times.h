// SPDX-License-Identifier: Apache-2.0
// The times of a dispatcher's requests, from the moment that their flag is seen to their answer: a histogram for each
// function and each thread that answers. cudaq_dispatcher_get_handler_times adds those of the threads.
//
//   request   answered by                                    histogram of
//   turn      the dispatcher thread, in the same turn        that thread
//   job       pool thread, dispatcher thread                 the thread that publishes (job_responder)
//   deferred  any thread of the caller                       the shared counters: several threads may add at a time
#pragma once

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#include "cudaq/realtime/detail/ring/function_index.h"
#include "lib/base/error_text.h"
#include "lib/base/ticks.h"
#include "lib/shared_ring/thread_counters.h"

#include <span>
#include <string>
#include <utility>

namespace cudaq::realtime::detail {

class handler_times {
public:
  /// Before a run, while no thread answers: forgets the times of the last run. `threads`: all counters of the
  /// dispatcher; the first `used` get histograms if `on`.
  void prepare(bool on, const function_index_view &index, std::span<thread_counters> threads, std::uint32_t used);

  bool on() const { return on_; }
  /// A moment in ticks; 0 if nothing is recorded.
  std::uint64_t now() const { return on_ ? clock_.now() : 0; }
  /// The moment at which the owner of `here` sees a request's flag. If it has just answered another request, that is
  /// the moment of this answer: reading the counter is most of what a time costs. Only if on().
  std::uint64_t now_taken(thread_counters &here) const {
    const std::uint64_t answered = std::exchange(here.answered_at, 0);
    return answered != 0 ? answered : clock_.now();
  }
  /// A request of `route` that was taken at `taken_at` is answered now. For the owner of `here`. Only if on().
  void record(thread_counters &here, std::uint32_t route, std::uint64_t taken_at) const {
    const std::uint64_t now = clock_.now();
    here.record_time(function_of_route_[route], clock_.ns_between(taken_at, now), now);
  }

  /// The sum of all threads. Not during prepare.
  expected<> read(std::uint32_t function_id, std::span<const thread_counters> threads,
                  cudaq_handler_times_t &out) const;
  /// A line for each function that has answered. Not during prepare.
  std::string describe(std::span<const thread_counters> threads) const;

private:
  time_histogram::snapshot sum(std::size_t function, std::span<const thread_counters> threads) const;

  bool on_ = false;
  tick_clock clock_;
  std::vector<std::uint32_t> function_ids_;
  std::vector<std::uint32_t> function_of_route_; ///< position in function_ids_
};

} // namespace cudaq::realtime::detail
