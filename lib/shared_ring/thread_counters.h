// SPDX-License-Identifier: Apache-2.0
// What one thread of a dispatcher owns: its counters, its present handler call, and its scratch memory.
#pragma once

#include "cudaq/realtime/detail/base/shared_word.h"
#include "cudaq/realtime/detail/ring/judge.h"
#include "lib/base/time_histogram.h"

#include <memory>
#include <vector>

namespace cudaq::realtime::detail {

/// One thread writes them; with many_writers any thread may add. Any thread may read. Aligned to two cache lines,
/// because the adjacent-line prefetcher fetches lines in pairs.
struct alignas(128) thread_counters {
  explicit thread_counters(bool many_writers = false) : many_writers_(many_writers) {}

  counter dispatched; ///< handed to a handler
  counter responded;  ///< tx flags raised
  counter refused;    ///< accepted, and answered without a handler
  counter closed;     ///< jobs whose record is open again; and requests refused within their turn, which have none
  counter dropped_bad_magic, dropped_unknown_function, dropped_flag_value;
  counter unexpected_flag_values;
  counter handler_errors;
  counter protocol_errors[CUDAQ_RPC_ERROR_COUNT];
  counter tx_busy_waits, cursor_jumps, launches, hook_failures, dataplane_errors;
  counter heartbeat;

  /// The handler call in progress: function id in the upper 32 bits, slot + 1 in the lower. 0: no call.
  shared_word<std::uint64_t> busy;
  void enter(std::uint32_t slot, std::uint32_t function_id) {
    busy.set((std::uint64_t{function_id} << 32) | (std::uint64_t{slot} + 1));
  }
  void leave() { busy.set(0); }

  /// Copy of the payload for v2 handlers on in-place rings; slot_size bytes, allocated at start. Empty: no copies.
  std::vector<std::uint64_t> scratch;

  /// Times of the requests that this thread answers, by the function numbers of handler_times; NULL: not recorded.
  std::unique_ptr<time_histogram[]> times;
  /// The moment of the last recorded answer, in ticks, for the next request that is taken at once; 0: none.
  std::uint64_t answered_at = 0;
  void record_time(std::uint32_t function, std::uint64_t ns, std::uint64_t now) {
    times[function].record(ns, many_writers_);
    if (!many_writers_)
      answered_at = now;
  }

  void count(counter &c, std::uint64_t n = 1) {
    if (many_writers_)
      c.add(n);
    else
      c.bump(n);
  }

  /// The status is counted first: a reader that sees the response counted finds its status counted, too.
  void count_response(std::int32_t status) {
    if (status != CUDAQ_RPC_OK) [[unlikely]] {
      const std::int64_t index = CUDAQ_RPC_ERROR_INDEX(std::int64_t{status});
      count(index >= 0 && index < CUDAQ_RPC_ERROR_COUNT ? protocol_errors[index] : handler_errors);
    }
    count(responded);
  }

  void count_drop(verdict why) {
    count(why == verdict::drop_magic     ? dropped_bad_magic
          : why == verdict::drop_unknown ? dropped_unknown_function
                                         : dropped_flag_value);
  }

  std::uint64_t dropped() const {
    return dropped_bad_magic.value() + dropped_unknown_function.value() + dropped_flag_value.value();
  }

private:
  bool many_writers_;
};

} // namespace cudaq::realtime::detail
