// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/base/affinity.h"

#include <cstddef>
#include <vector>

namespace cudaq::qec::realtime {

/// Where the threads of a pool run: thread k on core k of the list, which begins again at its end.
struct thread_places {
  std::vector<int> cores;    ///< empty: any
  int realtime_priority = 0; ///< SCHED_FIFO; 0: policy unchanged
  bool operator==(const thread_places &) const = default;

  [[nodiscard]] cudaq::realtime::detail::thread_placement of(std::size_t thread) const noexcept {
    return {cores.empty() ? CUDAQ_CORE_ANY : cores[thread % cores.size()], CUDAQ_NUMA_NODE_ANY, realtime_priority};
  }
};

} // namespace cudaq::qec::realtime
