// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/compare/compare.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

/// The figure of each run. Empty if a run does not have it.
std::vector<report_figure> in_all_runs(const compared_runs &runs, const report_figure &like) {
  std::vector<report_figure> found;
  for (const json &report : runs.reports) {
    const auto all = figures_of(report);
    const auto same = std::ranges::find_if(
        all, [&](const report_figure &f) { return f.of == like.of && f.what == like.what && f.unit == like.unit; });
    if (same == all.end())
      return {};
    found.push_back(*same);
  }
  return found;
}

/// That of equal values is exactly this value.
double geometric_mean(const std::vector<double> &values) {
  double logarithms = 0;
  for (const double v : values)
    logarithms += std::log(v / values.front());
  return values.front() * std::exp(logarithms / static_cast<double>(values.size()));
}

/// One side as a whole: its only run, or the geometric mean, or the errors, of all runs.
report_figure of_all(const std::vector<report_figure> &runs) {
  report_figure all = runs.front();
  if (runs.size() == 1)
    return all;
  all.errors = all.shots = 0;
  std::vector<double> values;
  for (const report_figure &f : runs) {
    values.push_back(f.value);
    all.errors += f.errors;
    all.shots += f.shots;
  }
  all.value = all.what == "errors" ? all.errors / all.shots : geometric_mean(values);
  return all;
}

/// The values whose spread is the noise: of the runs, or of the rounds of the only run.
std::vector<double> values_of(const std::vector<report_figure> &runs) {
  if (runs.size() == 1 && !runs.front().rounds.empty())
    return runs.front().rounds;
  std::vector<double> values;
  for (const report_figure &f : runs)
    values.push_back(f.value);
  return values;
}

ratio_estimate estimate(const std::vector<report_figure> &base, const std::vector<report_figure> &now,
                        compared_figure &figure) {
  if (figure.base.what == "errors") {
    ratio_estimate e = ratio_of_errors(figure.base.errors, figure.base.shots, figure.now.errors, figure.now.shots);
    if (figure.base.errors != 0 && figure.now.errors != 0) // without the half errors that the interval needs
      e.ratio = figure.now.value / figure.base.value;
    return e;
  }
  const std::vector<double> a = values_of(base), b = values_of(now);
  figure.base_values = a.size();
  figure.now_values = b.size();
  // Without noise on one side the values of all exchanges together are better than the mean of the rounds.
  if (a.size() < 2 || b.size() < 2)
    return ratio_of_values({&figure.base.value, 1}, {&figure.now.value, 1});
  figure.base.value = geometric_mean(a);
  figure.now.value = geometric_mean(b);
  return ratio_of_values(a, b);
}

comparison comparison_of(const compared_figure &figure, double tolerance) {
  auto [low, high] = figure.estimate.interval.value_or(std::pair{figure.estimate.ratio, figure.estimate.ratio});
  if (figure.base.higher_is_better())
    std::tie(low, high) = std::pair{1 / high, 1 / low};
  const double max_ratio = 1 + tolerance, min_ratio = 1 / max_ratio;
  return low > max_ratio                         ? comparison::worse
         : high < min_ratio                      ? comparison::better
         : low >= min_ratio && high <= max_ratio ? comparison::same
                                                 : comparison::undecided;
}

bool has_ratio(const std::vector<report_figure> &runs) {
  return std::ranges::all_of(runs, [](const report_figure &f) {
    return f.what == "errors" || (f.value > 0 && std::ranges::all_of(f.rounds, [](double v) { return v > 0; }));
  });
}

} // namespace

std::vector<compared_figure> compare_runs(const compared_runs &base, const compared_runs &now,
                                          const compare_options &options) {
  std::vector<compared_figure> figures;
  for (const report_figure &of : figures_of(base.reports.front())) {
    const auto a = in_all_runs(base, of), b = in_all_runs(now, of);
    if (a.empty() || b.empty() || !has_ratio(a) || !has_ratio(b))
      continue;
    compared_figure figure{of_all(a), of_all(b), {}};
    figure.estimate = estimate(a, b, figure);
    figure.judged = std::ranges::find(options.judge, of.what) != options.judge.end();
    if (figure.judged)
      figure.is = comparison_of(figure, options.tolerance);
    figures.push_back(std::move(figure));
  }
  return figures;
}

} // namespace cudaq::realtime::tools
