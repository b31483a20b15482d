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

ratio_line with_target(const char *id, const char *what, double good, double aim, bool higher_is_better) {
  ratio_line line{id, what};
  line.good = good;
  line.aim = aim;
  line.higher_is_better = higher_is_better;
  return line;
}

} // namespace

const char *ratio_line::verdict() const {
  if (good == 0)
    return "no target";
  const auto reaches = [this](double target) { return higher_is_better ? pooled >= target : pooled <= target; };
  return reaches(aim) ? "aim reached" : reaches(good) ? "good reached" : "missed";
}

ratio_line latency_ratio(const char *id, const char *what, const measured_case &c, const measured_case &floor,
                         double good, double aim) {
  ratio_line line = with_target(id, what, good, aim, false);
  line.pooled = static_cast<double>(c.total.per_exchange.percentile(50)) /
                std::max(1.0, static_cast<double>(floor.total.per_exchange.percentile(50)));
  spread(line, round_ratios(c.round_p50, floor.round_p50));
  return line;
}

ratio_line rate_ratio(const char *id, const char *what, const measured_case &c, const measured_case &floor, double good,
                      double aim) {
  ratio_line line = with_target(id, what, good, aim, true);
  line.pooled = c.total.per_second() / std::max(1.0, floor.total.per_second());
  spread(line, round_ratios(c.round_rate, floor.round_rate));
  return line;
}

ratio_line plain_rate(const char *id, const char *what, const measured_case &c, double good, double aim) {
  ratio_line line = with_target(id, what, good, aim, true);
  line.pooled = c.total.per_second();
  spread(line, c.round_rate);
  return line;
}

json ratio_json(const ratio_line &r) {
  json entry = {{"ratio", r.pooled},
                {"round_min", r.round_min},
                {"round_median", r.round_median},
                {"round_max", r.round_max},
                {"verdict", r.verdict()}};
  if (r.good != 0)
    entry.update({{"id", r.id}, {"good", r.good}, {"aim", r.aim}});
  return entry;
}

} // namespace cudaq::realtime::tools
