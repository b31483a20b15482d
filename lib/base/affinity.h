// SPDX-License-Identifier: Apache-2.0
// Where threads run: cores, NUMA nodes, real-time priority.
#pragma once

#include "lib/base/error_text.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cudaq::realtime::detail {

struct thread_placement {
  int core = CUDAQ_CORE_ANY;
  int numa_node = CUDAQ_NUMA_NODE_ANY; ///< used where core is CUDAQ_CORE_ANY
  int realtime_priority = 0;           ///< SCHED_FIFO; 0: policy unchanged
};

/// Applies a placement to the calling thread. If the system refuses it, the returned reason names the field.
expected<> place_this_thread(const thread_placement &placement);

/// Gives the calling thread a name of at most 15 characters (longer ones are cut).
void name_this_thread(const char *name);

/// The CPUs of a list in the kernel's format: "0-3,8,10-11". It does not depend on the program's locale.
std::vector<int> cpus_in_list(const std::string &list);

/// The CPUs of a NUMA node. Empty if the node does not exist.
std::vector<int> cpus_of_node(int node);

} // namespace cudaq::realtime::detail
