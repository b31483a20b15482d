// SPDX-License-Identifier: Apache-2.0
// The threads of this process, as the kernel lists them.
#pragma once

#include <cstdlib>
#include <dirent.h>
#include <fstream>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace cudaq::realtime::test {

struct thread_seen {
  pid_t tid = 0;
  std::string name;
  bool operator==(const thread_seen &) const = default;
};

/// One reading of the list. A task that ends meanwhile may hide those after it.
inline std::vector<thread_seen> threads_listed() {
  std::vector<thread_seen> found;
  DIR *tasks = opendir("/proc/self/task");
  while (const dirent *entry = readdir(tasks)) {
    std::ifstream file("/proc/self/task/" + std::string(entry->d_name) + "/comm");
    std::string name;
    if (std::getline(file, name))
      found.push_back({static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10)), name});
  }
  closedir(tasks);
  return found;
}

/// The threads whose name begins with `prefix`. A joined thread is still listed for a moment: the kernel wakes the
/// joiner before it removes the task from the list. Who expects that a thread is gone waits with `eventually`.
inline std::vector<thread_seen> threads_named(const std::string &prefix) {
  std::vector<thread_seen> before, now = threads_listed();
  do {
    before = std::move(now);
    now = threads_listed();
  } while (now != before);
  std::erase_if(now, [&](const thread_seen &seen) { return seen.name.rfind(prefix, 0) != 0; });
  return now;
}

} // namespace cudaq::realtime::test
