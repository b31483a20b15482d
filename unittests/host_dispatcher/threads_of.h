// SPDX-License-Identifier: Apache-2.0
// The cores and the time of the library's threads in this process.
#pragma once

#include "unittests/host_dispatcher/traffic.h"
#include "unittests/support/threads_named.h"

#include <fstream>
#include <sched.h>
#include <unistd.h>

namespace cudaq::realtime::test {

/// Waits until no such thread is left; false after the deadline.
inline bool soon_without_threads_named(const std::string &prefix) {
  return eventually([&] { return threads_named(prefix).empty(); });
}

inline std::vector<int> cores_of(pid_t tid) {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(tid, sizeof(set), &set), 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set))
      cores.push_back(core);
  return cores;
}

/// The user and system time that a thread has used.
inline std::chrono::milliseconds cpu_time_of(pid_t tid) {
  std::ifstream file("/proc/self/task/" + std::to_string(tid) + "/stat");
  std::string text;
  std::getline(file, text);
  text.erase(0, text.rfind(')') + 2); // the name may hold blanks
  long ticks = 0;
  std::size_t at = 0;
  for (int field = 3; field <= 15; ++field) { // fields 14 and 15 are utime and stime
    const std::size_t end = text.find(' ', at);
    if (field >= 14)
      ticks += std::strtol(text.c_str() + at, nullptr, 10);
    at = end + 1;
  }
  return std::chrono::milliseconds(ticks * 1000 / sysconf(_SC_CLK_TCK));
}

} // namespace cudaq::realtime::test
