// SPDX-License-Identifier: Apache-2.0
#include "tools/html/html_plots.h"
#include "tools/html/plot_frame.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace cudaq::realtime::tools {
namespace {

using detail::time_histogram;

constexpr double kRow = 44, kHighest = 36; ///< of a row, and of its bars
/// The left end of the axis: below it a nanosecond is wider than a bar.
constexpr double kLowestNs = 10, kBarsOfDecade = 10;

double edge(std::size_t bar) { return kLowestNs * std::pow(10, static_cast<double>(bar) / kBarsOfDecade); }

std::size_t bar_of(std::uint64_t ns) {
  const double above = std::log10(std::max(static_cast<double>(ns), kLowestNs) / kLowestNs);
  return static_cast<std::size_t>(above * kBarsOfDecade + 1e-9);
}

/// The requests of each bar.
std::vector<double> bars_of(const time_histogram::snapshot &times, std::size_t bars) {
  std::vector<double> all(bars);
  for (std::size_t i = 0; i < times.counts.size(); ++i)
    all[std::min(bar_of(time_histogram::buckets::lower_of(i)), bars - 1)] += static_cast<double>(times.counts[i]);
  return all;
}

constexpr double kPercents[] = {50, 99, 99.9, 100};

std::string marks_of(const time_histogram::snapshot &times, const plot_axis &x, double bottom) {
  std::string out;
  for (std::size_t k = 0; k < std::size(kPercents); ++k)
    out += fmt::format(R"(<line class="{0}" x1="{1:.1f}" x2="{1:.1f}" y1="{2}" y2="{3}"/>)", line_class(k),
                       x.at(static_cast<double>(times.percentile(kPercents[k]))), bottom - kHighest, bottom);
  return out;
}

} // namespace

std::string times_plot(const std::vector<plotted_times> &rows) {
  std::uint64_t longest = 0;
  for (const plotted_times &row : rows)
    longest = std::max(longest, row.times.max_ns);
  const std::size_t bars = bar_of(longest) + 1;
  std::vector<std::vector<double>> counts;
  double max_count = 0;
  for (const plotted_times &row : rows) {
    counts.push_back(bars_of(row.times, bars));
    max_count = std::max(max_count, std::ranges::max(counts.back()));
  }
  if (max_count == 0)
    return "";
  const plot_axis x = plot_axis::logarithmic(kLowestNs, edge(bars), kLeft, kRight);
  const plot_height height{kTop, kTop + kRow * static_cast<double>(rows.size())};
  std::string out =
      horizontal(x, ticks(x, 8, &time_label), "time (logarithmic, from 10 ns); height: requests (logarithmic)", height);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const double bottom = kTop + kRow * static_cast<double>(r + 1);
    // Half a request has the height 0, so that a single one is seen.
    const plot_axis y = plot_axis::logarithmic(0.5, max_count, bottom, bottom - kHighest);
    std::string points;
    for (std::size_t i = 0; i < bars; ++i) {
      const double top = y.at(std::max(counts[r][i], 0.5));
      points += fmt::format("{0:.1f},{2:.1f} {1:.1f},{2:.1f} ", x.at(edge(i)), x.at(edge(i + 1)), top);
    }
    out += fmt::format(R"(<line class="grid" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>)"
                       R"(<polygon class="filled" points="{0},{2} {3}{1},{2}"/>)"
                       R"(<text x="{4}" y="{5}" text-anchor="end">{6}</text>)",
                       kLeft, kRight, bottom, points, kLeft - 6, bottom - 12, html_text(rows[r].name));
    if (rows[r].times.count != 0)
      out += marks_of(rows[r].times, x, bottom);
  }
  std::vector<named_line> names;
  for (const double percent : kPercents)
    names.push_back({percent == 100 ? "max" : fmt::format("p{:g}", percent), line_class(names.size())});
  return plot("times of the stages", out, names, height);
}

} // namespace cudaq::realtime::tools
