// SPDX-License-Identifier: Apache-2.0
#include "lib/host_dispatcher/handler_times.h"

#include "lib/base/public_histogram.h"
#include "lib/host_dispatcher/diagnostics.h"

#include <algorithm>
#include <cinttypes>

namespace cudaq::realtime::detail {

void handler_times::prepare(bool on, const function_index_view &index, std::span<thread_counters> threads,
                            std::uint32_t used) {
  std::vector<std::uint32_t> ids, of_route;
  std::vector<std::unique_ptr<time_histogram[]>> made(threads.size());
  tick_clock clock;
  if (on) {
    for (std::uint32_t r = 0; r < index.num_routes; ++r) { // the routes of a function are adjacent
      if (ids.empty() || ids.back() != index.routes[r].function_id)
        ids.push_back(index.routes[r].function_id);
      of_route.push_back(static_cast<std::uint32_t>(ids.size()) - 1);
    }
    for (std::uint32_t t = 0; t < used; ++t)
      made[t] = std::make_unique<time_histogram[]>(ids.size());
    clock = tick_clock::measured();
  }
  // From here on nothing can fail.
  for (std::size_t t = 0; t < threads.size(); ++t)
    threads[t].times = std::move(made[t]);
  function_ids_ = std::move(ids);
  function_of_route_ = std::move(of_route);
  clock_ = clock;
  on_ = on;
}

time_histogram::snapshot handler_times::sum(std::size_t function, std::span<const thread_counters> threads) const {
  time_histogram::snapshot all;
  for (const thread_counters &t : threads)
    if (t.times)
      all.add(t.times[function]);
  return all;
}

expected<> handler_times::read(std::uint32_t function_id, std::span<const thread_counters> threads,
                               cudaq_handler_times_t &out) const {
  if (!on_)
    return make_reason(CUDAQ_ERR_STATE, "the times of handlers are not recorded: call "
                                        "cudaq_dispatcher_set_handler_times before the start");
  const auto found = std::ranges::find(function_ids_, function_id);
  if (found == function_ids_.end())
    return make_reason(CUDAQ_ERR_INVALID_ARG, "function_id is 0x%08x: the last start found no such function",
                       function_id);
  write_histogram(sum(static_cast<std::size_t>(found - function_ids_.begin()), threads), out);
  return {};
}

std::string handler_times::describe(std::span<const thread_counters> threads) const {
  std::string text;
  for (std::size_t f = 0; f < function_ids_.size(); ++f)
    if (const time_histogram::snapshot all = sum(f, threads); all.count != 0)
      append(text,
             "times of function 0x%08x: %" PRIu64 " answers, p50 %" PRIu64 " ns, p99 %" PRIu64 " ns, p99.9 %" PRIu64
             " ns, max %" PRIu64 " ns\n",
             function_ids_[f], all.count, all.percentile(50), all.percentile(99), all.percentile(99.9), all.max_ns);
  return text;
}

} // namespace cudaq::realtime::detail
