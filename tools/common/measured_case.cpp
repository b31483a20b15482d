// SPDX-License-Identifier: Apache-2.0
#include "tools/common/measured_case.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

void spread(ratio_line &line, std::vector<double> values) {
  if (values.empty())
    return;
  std::ranges::sort(values);
  line.round_min = values.front();
  line.round_median = values[values.size() / 2];
  line.round_max = values.back();
}

std::vector<double> round_ratios(const std::vector<double> &of, const std::vector<double> &over) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < of.size() && i < over.size(); ++i)
    if (over[i] > 0)
      ratios.push_back(of[i] / over[i]);
  return ratios;
}

} // namespace

ratio_line latency_ratio(const char *what, const measured_case &c, const measured_case &floor) {
  ratio_line line{what};
  line.pooled = static_cast<double>(c.total.per_exchange.percentile(50)) /
                std::max(1.0, static_cast<double>(floor.total.per_exchange.percentile(50)));
  spread(line, round_ratios(c.round_p50, floor.round_p50));
  return line;
}

ratio_line rate_ratio(const char *what, const measured_case &c, const measured_case &floor) {
  ratio_line line{what};
  line.pooled = c.total.per_second() / std::max(1.0, floor.total.per_second());
  spread(line, round_ratios(c.round_rate, floor.round_rate));
  return line;
}

ratio_line plain_rate(const char *what, const measured_case &c) {
  ratio_line line{what};
  line.pooled = c.total.per_second();
  spread(line, c.round_rate);
  return line;
}

json ratio_json(const ratio_line &r) {
  return {
      {"ratio", r.pooled}, {"round_min", r.round_min}, {"round_median", r.round_median}, {"round_max", r.round_max}};
}

} // namespace cudaq::realtime::tools
