// SPDX-License-Identifier: Apache-2.0
#include "tools/html/plot_axis.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace cudaq::realtime::tools {

plot_axis plot_axis::logarithmic(double low, double high, double from, double to) {
  return {true, low, std::max(high, 1.1 * low), from, to};
}

plot_axis plot_axis::linear(double low, double high, double from, double to) {
  return {false, low, high > low ? high : low + 1, from, to};
}

double plot_axis::at(double value) const {
  const double v = std::clamp(value, low_, high_);
  const double part = logarithmic_ ? std::log(v / low_) / std::log(high_ / low_) : (v - low_) / (high_ - low_);
  return from_ + (to_ - from_) * part;
}

std::vector<double> plot_axis::powers_and_halves(std::size_t max_count) const {
  std::vector<double> values;
  const auto keep = [&](double v) {
    if (v >= low_ * (1 - 1e-9) && v <= high_ * (1 + 1e-9))
      values.push_back(v);
  };
  const double decades = std::log10(high_ / low_);
  const bool fine = 3 * decades <= static_cast<double>(max_count);
  const double each = std::max(1.0, std::ceil(decades / static_cast<double>(max_count)));
  for (double power = std::floor(std::log10(low_)); power <= std::log10(high_); power += fine ? 1 : each)
    for (const double digit : {1.0, 2.0, 5.0})
      if (fine || digit == 1)
        keep(digit * std::pow(10, power));
  return values;
}

std::vector<double> plot_axis::round_values(std::size_t max_count) const {
  std::vector<double> values;
  if (logarithmic_)
    values = powers_and_halves(max_count);
  if (values.size() >= 2)
    return values;
  values.clear(); // a narrow range has none of these, or one
  const double rough = (high_ - low_) / static_cast<double>(max_count),
               power = std::pow(10, std::floor(std::log10(rough)));
  const double step = power * (rough > 5 * power ? 10 : rough > 2 * power ? 5 : rough > power ? 2 : 1);
  for (double i = std::ceil(low_ / step); i * step <= high_ * (1 + 1e-9); ++i)
    values.push_back(i * step);
  return values;
}

std::string time_label(double ns) {
  if (ns == 0)
    return "0";
  if (ns < 1e3)
    return fmt::format("{:g} ns", ns);
  if (ns < 1e6)
    return fmt::format("{:g} us", ns / 1e3);
  return ns < 1e9 ? fmt::format("{:g} ms", ns / 1e6) : fmt::format("{:g} s", ns / 1e9);
}

std::string count_label(double count) {
  if (count < 1e3)
    return fmt::format("{:g}", count);
  return count < 1e6 ? fmt::format("{:g}k", count / 1e3) : fmt::format("{:g}M", count / 1e6);
}

} // namespace cudaq::realtime::tools
