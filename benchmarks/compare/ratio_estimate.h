// SPDX-License-Identifier: Apache-2.0
// The ratio of two measured values, with its noise.
#pragma once

#include <optional>
#include <span>
#include <utility>

namespace cudaq::realtime::tools {

struct ratio_estimate {
  double ratio = 1;
  /// 95 % of such intervals contain the true ratio. Empty: one of the sides has only one value, so the noise is not
  /// known.
  std::optional<std::pair<double, double>> interval;
};

/// Geometric mean of `now` over that of `base`; both hold positive values of independent runs or rounds. The interval
/// is Welch's, of the logarithms: the two sides may have different noise.
ratio_estimate ratio_of_values(std::span<const double> base, std::span<const double> now);

/// Ratio of two error rates, from `errors` of `shots` each. Half an error is added to both, so that 0 errors have an
/// interval, too; the logarithm of the ratio is taken as normal.
ratio_estimate ratio_of_errors(double base_errors, double base_shots, double now_errors, double now_shots);

} // namespace cudaq::realtime::tools
