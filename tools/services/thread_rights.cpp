// SPDX-License-Identifier: Apache-2.0
#include "tools/services/thread_rights.h"

#include "lib/base/affinity.h"
#include "tools/common/system_files.h"

#include <charconv>
#include <cstdint>
#include <string_view>
#include <thread>

namespace cudaq::realtime::tools {

std::string refused_placement(int core, int realtime_priority) {
  detail::expected<> result;
  std::thread([&] {
    result = detail::place_this_thread({.core = core, .realtime_priority = realtime_priority});
  }).join();
  return result.ok() ? "" : result.text();
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
