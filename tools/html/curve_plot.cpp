// SPDX-License-Identifier: Apache-2.0
#include "tools/html/html_plots.h"
#include "tools/html/plot_frame.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>

namespace cudaq::realtime::tools {
namespace {

constexpr plot_height kSquare{kSquareTop, kSquareBottom};
constexpr double kCap = 3.5;  ///< half of the width of an interval's end
constexpr double kBeside = 5; ///< between intervals of curves at one x
constexpr double kArrow = 26; ///< length of a bound

/// The ends of both axes, with room around the points and their intervals.
struct curve_ranges {
  double first = 0, last = 0, lowest = 1, highest = 0;

  explicit curve_ranges(const std::vector<plotted_curve> &curves) {
    for (const plotted_curve &c : curves)
      for (const plotted_rate &p : c.points) {
        first = first == 0 ? p.x : std::min(first, p.x);
        last = std::max(last, p.x);
        for (const double rate : {p.rate, p.low})
          lowest = rate > 0 ? std::min(lowest, rate) : lowest;
        has_arrows = has_arrows || p.low <= 0;
        // Of a curve without a single failure only the high ends are known.
        lowest = p.high > 0 ? std::min(lowest, p.high) : lowest;
        highest = std::max({highest, p.rate, p.high});
      }
    if (highest == 0)
      return;
    const double across = std::pow(std::max(last / first, 1.2), 0.06), along = std::pow(highest / lowest, 0.05);
    first /= across;
    last *= across;
    lowest /= has_arrows ? 2 * along : 1.1 * along; // room for an arrow
    highest *= 1.1 * along;
  }

private:
  bool has_arrows = false;
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

/// Calls with each value of an axis that is a digit times a power of ten, and how long its mark is.
template <typename Call>
void each_mark(const plot_axis &axis, const Call &call) {
  for (int power = static_cast<int>(std::floor(std::log10(axis.low()))); std::pow(10, power) <= axis.high(); ++power)
    for (int digit = 1; digit <= 9; ++digit)
      if (const double value = digit * std::pow(10, power); value >= axis.low() && value <= axis.high())
        call(axis.at(value), digit == 1 ? 8 : 4);
}

/// Marks on all four sides.
std::string marks(const plot_axis &x, const plot_axis &y) {
  std::string path;
  each_mark(x, [&path](double at, int length) {
    path += fmt::format("M{:.1f} {}v{}M{:.1f} {}v{}", at, kSquare.bottom, -length, at, kSquare.top, length);
  });
  each_mark(y, [&path](double at, int length) {
    path += fmt::format("M{} {:.1f}h{}M{} {:.1f}h{}", kLeft, at, length, kRight, at, -length);
  });
  return fmt::format(R"(<path class="frame" d="{}"/>)", path);
}

std::string rate_label(double rate) { return fmt::format("{:g}", rate); }

/// From `high` to `low`, which are pixels, so `low` is the larger one. `open`: the low end is not known.
std::string interval(std::size_t colour, double x, double high, double low, bool open) {
  std::string path = fmt::format("M{:.1f} {:.1f}h{:.1f}M{:.1f} {:.1f}V{:.1f}", x - kCap, high, 2 * kCap, x, high, low);
  if (open)
    path += fmt::format("m{0:.1f} {1:.1f}l{2:.1f} {3:.1f}l{2:.1f} {1:.1f}", -kCap, -2 * kCap, kCap, 2 * kCap);
  else
    path += fmt::format("M{:.1f} {:.1f}h{:.1f}", x - kCap, low, 2 * kCap);
  return fmt::format(R"(<path class="s{} interval" d="{}"/>)", colour, path);
}

void replace_all(std::string &text, const std::string &from, const std::string &to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

/// The style of plots with the values of `colours`, which are "--name:value;...".
std::string style_with(const std::string &colours) {
  std::string style = std::string(kPlotStyle) + ".back{fill:var(--back)}";
  for (std::size_t at = 0; at < colours.size();) {
    const std::size_t colon = colours.find(':', at), next = std::min(colours.find(';', at), colours.size());
    replace_all(style, "var(" + colours.substr(at, colon - at) + ")", colours.substr(colon + 1, next - colon - 1));
    at = next + 1;
  }
  return style;
}

} // namespace

std::string curve_plot(const std::vector<plotted_curve> &curves, const std::string &x_title, const std::string &rates,
                       std::string (*label)(double)) {
  const curve_ranges ends(curves);
  if (ends.highest == 0)
    return "";
  const plot_axis x = plot_axis::logarithmic(ends.first, ends.last, kLeft, kRight);
  const plot_axis y = plot_axis::logarithmic(ends.lowest, ends.highest, kSquare.bottom, kSquare.top);
  const std::string what = rates + " over " + x_title;
  std::string out = horizontal(x, x_ticks(curves, x, label), x_title + " (logarithmic)", kSquare) +
                    vertical(y, ticks(y, 9, &rate_label), rates + " (logarithmic)", kSquare) +
                    fmt::format(R"(<rect class="frame" x="{0}" y="{1}" width="{2}" height="{3}"/>)"
                                R"(<text class="heading" x="{4}" y="{5}" text-anchor="middle">{6}</text>)",
                                kLeft, kSquare.top, kRight - kLeft, kSquare.bottom - kSquare.top, (kLeft + kRight) / 2,
                                kSquare.top - 16, html_text(what)) +
                    marks(x, y);
  std::vector<named_line> names;
  for (std::size_t k = 0; k < curves.size(); ++k) {
    const plotted_curve &c = curves[k];
    const double beside = std::clamp(kBeside * (static_cast<double>(k) - static_cast<double>(curves.size() - 1) / 2),
                                     -3 * kBeside, 3 * kBeside);
    const std::size_t colour = c.colour % kColours;
    const std::string css = fmt::format("s{} d{}", colour, c.dashes % kColours);
    std::string line, points;
    for (const plotted_rate &p : c.points) {
      const double at = x.at(p.x) + beside;
      if (p.high > p.low)
        points += interval(colour, at, y.at(p.high), p.low > 0 ? y.at(p.low) : y.at(p.high) + kArrow, p.low <= 0);
      if (p.rate <= 0)
        continue;
      line += fmt::format("{:.1f},{:.1f} ", at, y.at(p.rate));
      points += fmt::format(R"(<circle class="f{}" cx="{:.1f}" cy="{:.1f}" r="3"/>)", colour, at, y.at(p.rate));
    }
    out += polyline(css, line) + points;
    names.push_back({c.name, css});
  }
  return plot(what, out, names, kSquare);
}

std::string svg_file(const std::string &plot) {
  const std::size_t begin = plot.find("<svg"), end = plot.find("</svg>");
  if (begin == std::string::npos || end == std::string::npos)
    return "";
  std::string picture = plot.substr(begin, end - begin) + "</svg>\n";
  const std::size_t content = picture.find('>') + 1;
  picture.insert(content, "<!-- SPDX-License-Identifier: Apache-2.0 --><style>text{font-family:sans-serif}" +
                              style_with(kLightColours) + "@media (prefers-color-scheme:dark){" +
                              style_with(kDarkColours) +
                              R"(}</style><rect class="back" width="100%" height="100%" fill="#fff"/>)");
  picture.insert(picture.find(' '), R"( xmlns="http://www.w3.org/2000/svg")");
  return picture;
}

} // namespace cudaq::realtime::tools
