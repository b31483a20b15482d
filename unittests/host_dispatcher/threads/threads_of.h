// SPDX-License-Identifier: Apache-2.0
// The library's threads in this process, as the kernel lists them.
#pragma once

#include "unittests/host_dispatcher/traffic.h"

#include <dirent.h>
#include <fstream>
#include <sched.h>
#include <unistd.h>

namespace cudaq::realtime::test {

struct thread_seen {
  pid_t tid = 0;
  std::string name;
};

/// The threads whose name begins with `prefix`.
inline std::vector<thread_seen> threads_named(const std::string &prefix) {
  std::vector<thread_seen> found;
  DIR *tasks = opendir("/proc/self/task");
  while (const dirent *entry = readdir(tasks)) {
    std::ifstream file("/proc/self/task/" + std::string(entry->d_name) + "/comm");
    std::string name;
    if (std::getline(file, name) && name.rfind(prefix, 0) == 0)
      found.push_back({static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10)), name});
  }
  closedir(tasks);
  return found;
}

/// Waits until no such thread is left; false after the deadline. A joined thread is still listed for a moment: the
/// kernel wakes the joiner before it removes the task from the list.
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
