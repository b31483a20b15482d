// SPDX-License-Identifier: Apache-2.0
#include "tools/html/html_plots.h"
#include "tools/html/plot_frame.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace cudaq::realtime::tools {
namespace {

/// The ends of both axes.
struct curve_ranges {
  double first = 0, last = 0, lowest = 1, highest = 0;

  explicit curve_ranges(const std::vector<plotted_curve> &curves) {
    for (const plotted_curve &c : curves)
      for (const plotted_rate &p : c.points) {
        first = first == 0 ? p.x : std::min(first, p.x);
        last = std::max(last, p.x);
        for (const double rate : {p.rate, p.low})
          lowest = rate > 0 ? std::min(lowest, rate) : lowest;
        highest = std::max({highest, p.rate, p.high});
      }
  }
};

/// The values of x themselves if these are few and their labels do not touch; else round values.
std::vector<axis_tick> x_ticks(const std::vector<plotted_curve> &curves, const plot_axis &x,
                               std::string (*label)(double)) {
  std::set<double> values;
  for (const plotted_curve &c : curves)
    for (const plotted_rate &p : c.points)
      values.insert(p.x);
  std::vector<axis_tick> own;
  double end = -kWidth; // of the label before
  for (const double value : values) {
    own.push_back({value, label(value)});
    const double half = kCharacter / 2 * static_cast<double>(own.back().label.size() + 1);
    if (x.at(value) - half < end)
      return ticks(x, 8, label);
    end = x.at(value) + half;
  }
  return own;
}

std::string rate_label(double rate) { return fmt::format("{:g}", rate); }

void replace_all(std::string &text, const std::string &from, const std::string &to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

} // namespace

std::string curve_plot(const std::vector<plotted_curve> &curves, const std::string &x_title, const std::string &rates,
                       std::string (*label)(double)) {
  const curve_ranges ends(curves);
  if (ends.highest == 0)
    return "";
  const plot_axis x = plot_axis::logarithmic(ends.first, ends.last, kLeft, kRight);
  const plot_axis y = plot_axis::logarithmic(ends.lowest, ends.highest, kBottom, kTop);
  std::string out = horizontal(x, x_ticks(curves, x, label), x_title + " (logarithmic)") +
                    vertical(y, ticks(y, 7, &rate_label), rates + " (logarithmic)");
  std::vector<named_line> names;
  for (const plotted_curve &c : curves) {
    const std::size_t colour = c.colour % kColours;
    const std::string css = fmt::format("s{} d{}", colour, c.dashes % kColours);
    std::string line, points;
    for (const plotted_rate &p : c.points) {
      if (p.high > p.low)
        points += fmt::format(R"(<path class="s{} interval" d="M{:.1f} {:.1f}V{:.1f}"/>)", colour, x.at(p.x),
                              y.at(p.high), y.at(p.low));
      if (p.rate <= 0)
        continue;
      line += fmt::format("{:.1f},{:.1f} ", x.at(p.x), y.at(p.rate));
      points += fmt::format(R"(<circle class="f{}" cx="{:.1f}" cy="{:.1f}" r="3"/>)", colour, x.at(p.x), y.at(p.rate));
    }
    out += polyline(css, line) + points;
    names.push_back({c.name, css});
  }
  return plot(rates + " over " + x_title, out, names);
}

std::string svg_file(const std::string &plot) {
  const std::size_t begin = plot.find("<svg"), end = plot.find("</svg>");
  if (begin == std::string::npos || end == std::string::npos)
    return "";
  std::string style = kPlotStyle;
  const std::string colours = kLightColours;
  for (std::size_t at = 0; at < colours.size();) { // "--name:value;..."
    const std::size_t colon = colours.find(':', at), next = std::min(colours.find(';', at), colours.size());
    replace_all(style, "var(" + colours.substr(at, colon - at) + ")", colours.substr(colon + 1, next - colon - 1));
    at = next + 1;
  }
  std::string picture = plot.substr(begin, end - begin) + "</svg>\n";
  const std::size_t content = picture.find('>') + 1;
  picture.insert(content, "<!-- SPDX-License-Identifier: Apache-2.0 --><style>text{font-family:sans-serif}" + style +
                              R"(</style><rect width="100%" height="100%" fill="#fff"/>)");
  picture.insert(picture.find(' '), R"( xmlns="http://www.w3.org/2000/svg")");
  return picture;
}

} // namespace cudaq::realtime::tools
