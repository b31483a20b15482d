// SPDX-License-Identifier: Apache-2.0
#include "tools/services/thread_rights.h"

#include "tools/common/system_files.h"

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <pthread.h>
#include <sched.h>
#include <string_view>
#include <thread>

namespace cudaq::realtime::tools {

std::string refused_placement(int core, int realtime_priority) {
  int error = 0;
  std::thread([&] {
    if (core >= CPU_SETSIZE)
      error = EINVAL;
    else if (core >= 0) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(core, &set);
      error = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    }
    sched_param param{};
    param.sched_priority = realtime_priority;
    if (error == 0 && realtime_priority != 0)
      error = pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
  }).join();
  return error == 0 ? "" : std::strerror(error);
}

bool may_lock_all_memory() {
  constexpr std::string_view kLine = "CapEff:\t";
  constexpr int kCapIpcLock = 14; // of the kernel
  for (const std::string &line : system_files("").lines("/proc/self/status"))
    if (std::uint64_t set = 0; line.starts_with(kLine))
      return std::from_chars(line.data() + kLine.size(), line.data() + line.size(), set, 16).ec == std::errc() &&
             (set >> kCapIpcLock & 1) != 0;
  return false;
}

} // namespace cudaq::realtime::tools
