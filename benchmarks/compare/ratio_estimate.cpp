// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/compare/ratio_estimate.h"

#include <array>
#include <cmath>
#include <cstddef>

namespace cudaq::realtime::tools {
namespace {

constexpr double kNormal = 1.96; ///< 97.5 % quantile of the normal distribution

/// 97.5 % quantile of Student's distribution; between two numbers of degrees of freedom the larger value.
double student_quantile(double freedom) {
  static constexpr std::array<double, 30> kTable = {
      12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
      2.120,  2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  if (freedom < 1)
    return kTable.front();
  if (freedom < kTable.size() + 1)
    return kTable[static_cast<std::size_t>(freedom) - 1];
  return kNormal + 2.42 / freedom; // differs by less than 0.001 from the true value
}

struct log_moments {
  double mean = 0;
  double squared_error = 0; ///< square of the standard error of the mean
};

log_moments of_logarithms(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  log_moments m;
  for (const double v : values)
    m.mean += std::log(v) / n;
  double squares = 0;
  for (const double v : values)
    squares += (std::log(v) - m.mean) * (std::log(v) - m.mean);
  if (values.size() > 1)
    m.squared_error = squares / (n - 1) / n;
  return m;
}

} // namespace

ratio_estimate ratio_of_values(std::span<const double> base, std::span<const double> now) {
  const log_moments a = of_logarithms(base), b = of_logarithms(now);
  ratio_estimate e;
  e.ratio = std::exp(b.mean - a.mean);
  if (base.size() < 2 || now.size() < 2)
    return e;
  const double error = std::sqrt(a.squared_error + b.squared_error);
  if (error == 0) {
    e.interval = {e.ratio, e.ratio};
    return e;
  }
  const double freedom =
      error * error * error * error /
      (a.squared_error * a.squared_error / static_cast<double>(base.size() - 1) +
       b.squared_error * b.squared_error / static_cast<double>(now.size() - 1)); // Welch and Satterthwaite
  const double reach = student_quantile(freedom) * error;
  e.interval = {e.ratio * std::exp(-reach), e.ratio * std::exp(reach)};
  return e;
}

ratio_estimate ratio_of_errors(double base_errors, double base_shots, double now_errors, double now_shots) {
  const double a = base_errors + 0.5, b = now_errors + 0.5;
  ratio_estimate e;
  e.ratio = (b / (now_shots + 0.5)) / (a / (base_shots + 0.5));
  const double error = std::sqrt(1 / a - 1 / (base_shots + 0.5) + 1 / b - 1 / (now_shots + 0.5));
  e.interval = {e.ratio * std::exp(-kNormal * error), e.ratio * std::exp(kNormal * error)};
  return e;
}

} // namespace cudaq::realtime::tools
