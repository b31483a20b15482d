// SPDX-License-Identifier: Apache-2.0
#include "tools/common/exchange.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace cudaq::realtime::tools {

tick_scale::tick_scale() {
  const std::uint64_t ns0 = now_ns(), ticks0 = ticks();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::uint64_t ns1 = now_ns(), ticks1 = ticks();
  ns_per_tick_ = static_cast<double>(ns1 - ns0) / static_cast<double>(ticks1 - ticks0);
  std::vector<std::uint64_t> gaps(1001);
  for (std::uint64_t &gap : gaps) {
    const std::uint64_t before = ticks();
    gap = ticks() - before;
  }
  std::ranges::nth_element(gaps, gaps.begin() + 500);
  overhead_ns_ = ns(gaps[500]);
}

} // namespace cudaq::realtime::tools
