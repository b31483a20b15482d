// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>

namespace cudaq::qec::realtime {

/// Processor time of the calling thread: other programs on the machine do not count.
[[nodiscard]] inline double thread_seconds() noexcept {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

} // namespace cudaq::qec::realtime
