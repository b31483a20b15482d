// SPDX-License-Identifier: Apache-2.0
#include "tools/shots/config_shots.h"

#include "tools/common/report.h"
#include "tools/shots/shot_plan.h"

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

qec::local_rule local_rule_named(const std::string &name) {
  return name == "plain"     ? qec::local_rule::plain
         : name == "guarded" ? qec::local_rule::guarded
                             : qec::local_rule::isolated;
}

} // namespace cudaq::realtime::tools
