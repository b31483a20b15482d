// SPDX-License-Identifier: Apache-2.0
#include "tools/shots/config_shots.h"

#include "tools/common/report.h"
#include "tools/shots/shot_plan.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace cudaq::realtime::tools {

double paired_errors::ratio() const noexcept { return static_cast<double>(with) / static_cast<double>(without); }

paired_errors::interval paired_errors::ratio_interval() const noexcept {
  const double a = static_cast<double>(with), b = static_cast<double>(without);
  const double deviation = std::sqrt(static_cast<double>(only_with + only_without) / (a * b));
  constexpr double kTwoSided95 = 1.959964;
  return {ratio() * std::exp(-kTwoSided95 * deviation), ratio() * std::exp(kTwoSided95 * deviation)};
}

bool paired_errors::beyond_chance() const noexcept {
  constexpr double kLevel = 0.01;
  const auto n = static_cast<double>(only_with + only_without);
  double tail = 0; // P(k or more of n)
  for (auto k = static_cast<double>(std::max(only_with, only_without)); k <= n; ++k) {
    const double term = std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) - n * std::log(2));
    tail += term;
    if (term < 1e-9 * tail)
      break;
  }
  return 2 * tail < kLevel;
}

qec::shot_set load_config_shots(const qec::decoding_config &config, const std::string &noise,
                                const std::string &folder) {
  const std::string name = config.shot_set_name(noise);
  auto loaded = qec::load_shot_set(folder, name);
  if (loaded.failed())
    throw no_shot_set(loaded.text(), folder, std::string(config.name), noise);
  const qec::shot_set &set = *loaded;
  if (set.shots == 0 || set.num_detectors != config.num_detectors())
    throw usage_error(fmt::format("{}: {} shots of {} detectors; {} has {} detectors", name, set.shots,
                                  set.num_detectors, config.name, config.num_detectors()));
  return std::move(*loaded);
}

} // namespace cudaq::realtime::tools
