// SPDX-License-Identifier: Apache-2.0
// An axis of a plot: where a value is, and which values are labelled.
#pragma once

#include <string>
#include <vector>

namespace cudaq::realtime::tools {

struct axis_tick {
  double value;
  std::string label;
};

class plot_axis {
public:
  /// Values from `low` to `high` are on the pixels from `from` to `to`. A logarithmic axis needs positive values. An
  /// axis without extent becomes a little longer.
  static plot_axis logarithmic(double low, double high, double from, double to);
  static plot_axis linear(double low, double high, double from, double to);

  /// Pixel of a value; values outside are at the ends.
  [[nodiscard]] double at(double value) const;
  [[nodiscard]] double low() const noexcept { return low_; }
  [[nodiscard]] double high() const noexcept { return high_; }
  /// Round values from the low to the high end, at most about `most` of them. Logarithmic: powers of ten, with 2 and 5
  /// between them if these are few; in a range that has less than two of these, as on a linear axis.
  [[nodiscard]] std::vector<double> round_values(std::size_t max_count) const;

private:
  [[nodiscard]] std::vector<double> powers_and_halves(std::size_t max_count) const;
  plot_axis(bool logarithmic, double low, double high, double from, double to)
      : logarithmic_(logarithmic), low_(low), high_(high), from_(from), to_(to) {}

  bool logarithmic_;
  double low_, high_, from_, to_;
};

/// "0", "200 ns", "5 us", "1.5 ms", "10 s".
std::string time_label(double ns);
/// "10", "5k", "2M".
std::string count_label(double count);

} // namespace cudaq::realtime::tools
