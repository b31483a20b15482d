// SPDX-License-Identifier: Apache-2.0
#include "tools/emulate/search/rate_search.h"

#include <algorithm>
#include <cmath>

namespace cudaq::realtime::tools {

rate_search_result search_rate(const rate_search &how, const std::function<std::optional<rate_trial>(double)> &play) {
  rate_search_result result;
  const auto holds = [&](double rate) {
    for (std::uint32_t run = 0; run < how.repeats; ++run) {
      std::optional<rate_trial> trial = play(rate);
      if (!trial) {
        result.ended = true;
        return false;
      }
      result.trials.push_back(std::move(*trial));
      if (!result.trials.back().failure.empty()) {
        result.failed = rate;
        return false;
      }
    }
    result.highest = rate;
    return true;
  };
  const auto bounded = [&how](double rate) { return std::clamp(rate, how.lowest, how.highest); };
  double rate = bounded(how.first);
  if (holds(rate)) {
    while (rate < how.highest && holds(bounded(rate * 2)))
      rate = result.highest;
  } else {
    while (!result.ended && rate > how.lowest && !holds(rate = bounded(rate / 2))) {
    }
  }
  while (!result.ended && result.highest != 0 && result.failed > result.highest * (1 + how.precision))
    holds(std::sqrt(result.highest * result.failed));
  return result;
}

} // namespace cudaq::realtime::tools
