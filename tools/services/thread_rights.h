// SPDX-License-Identifier: Apache-2.0
// What the system grants to threads and memory of this process.
#pragma once

#include <string>

namespace cudaq::realtime::tools {

/// Puts a thread, which then ends, on `core` with a SCHED_FIFO priority; -1 and 0: unchanged. "", or the reason, which
/// names the value. Throws std::system_error.
std::string refused_placement(int core, int realtime_priority);

/// This process may lock any number of pages: CAP_IPC_LOCK.
bool may_lock_all_memory();

} // namespace cudaq::realtime::tools
