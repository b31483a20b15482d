// SPDX-License-Identifier: Apache-2.0
#include "tools/html/html_plots.h"
#include "tools/html/plot_axis.h"

#include <algorithm>
#include <fmt/format.h>

namespace cudaq::realtime::tools {
namespace {

constexpr double kRatioWidth = 760, kRatioLeft = 330, kRatioRight = 660, kRatioTop = 14, kRatioRow = 22;
constexpr std::size_t kMaxRatioLetters = 50; ///< of a name beside the plot; the table has all of it

std::string shortened(const std::string &name) {
  return name.size() <= kMaxRatioLetters ? name : name.substr(0, kMaxRatioLetters - 3) + "...";
}

} // namespace

std::string ratio_plot(const std::vector<plotted_ratio> &ratios) {
  if (ratios.empty())
    return "";
  double low = 0.8, high = 1.25;
  for (const plotted_ratio &r : ratios) {
    low = std::clamp(std::min(low, r.low), 1e-3, low);
    high = std::clamp(std::max(high, r.high), high, 1e3);
  }
  const plot_axis x = plot_axis::logarithmic(low, high, kRatioLeft, kRatioRight);
  const double bottom = kRatioTop + kRatioRow * static_cast<double>(ratios.size());
  std::string out;
  std::vector<double> ticks = x.round_values(8);
  ticks.push_back(1);
  std::ranges::sort(ticks);
  double last = 0;
  for (const double value : ticks) {
    if (x.at(value) < last)
      continue; // the label would be on the one before
    last = x.at(value) + 40;
    out += fmt::format(R"(<line class="{0}" x1="{1:.1f}" x2="{1:.1f}" y1="{2}" y2="{3}"/>)"
                       R"(<text x="{1:.1f}" y="{4}" text-anchor="middle">{5:g}</text>)",
                       value == 1 ? "mark" : "grid", x.at(value), kRatioTop, bottom, bottom + 17, value);
  }
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    const plotted_ratio &r = ratios[i];
    const double y = kRatioTop + kRatioRow * (static_cast<double>(i) + 0.5);
    const char *sign = r.verdict == "worse"    ? "bad"
                       : r.verdict == "better" ? "good"
                       : r.verdict == "same"   ? "even"
                                               : "even open";
    out += fmt::format(R"(<g class="{0}"><text x="{1}" y="{2:.1f}" text-anchor="end">{3}</text>)"
                       R"(<line x1="{4:.1f}" x2="{5:.1f}" y1="{6:.1f}" y2="{6:.1f}"/>)"
                       R"(<circle cx="{7:.1f}" cy="{6:.1f}" r="5"/><text x="{8}" y="{2:.1f}">{9}</text></g>)",
                       sign, kRatioLeft - 12, y + 4, html_text(shortened(r.name)), x.at(r.low), x.at(r.high), y,
                       x.at(r.ratio), kRatioRight + 14, html_text(r.verdict));
  }
  out += fmt::format(R"(<text class="title" x="{}" y="{}" text-anchor="middle">ratio to the base, with 95 % interval )"
                     R"((logarithmic)</text>)",
                     (kRatioLeft + kRatioRight) / 2, bottom + 40);
  return fmt::format(R"(<div class="plot"><svg viewBox="0 0 {} {}" role="img" aria-label="ratios">{}</svg></div>)"
                     "\n",
                     kRatioWidth, bottom + 54, out);
}

} // namespace cudaq::realtime::tools
