// SPDX-License-Identifier: Apache-2.0
#include "tools/html/plot_frame.h"

#include "tools/html/html_plots.h"

#include <algorithm>
#include <fmt/format.h>

namespace cudaq::realtime::tools {

// The colours keep a contrast of 4.5 on their background.
const char *const kLightColours = "--back:#fff;--text:#1b1e21;--soft:#596066;--line:#d5dade;--good:#1f7a3a;"
                                  "--bad:#b3261e;--c0:#2563a8;--c1:#b4541a;--c2:#2f7a43;--c3:#7d4aa5";
const char *const kDarkColours = "--back:#15181b;--text:#e7e9eb;--soft:#a3abb2;--line:#3a4147;--good:#6fce8c;"
                                 "--bad:#ff8a80;--c0:#79b0ee;--c1:#f0a06a;--c2:#7fcf93;--c3:#c79bea";
const char *const kPlotStyle = R"css(
svg{font-size:12px;fill:var(--text)}svg .title{fill:var(--soft)}.grid{stroke:var(--line);stroke-width:1}
polyline,path{fill:none;stroke-width:1.8;stroke-linejoin:round}
.s0{stroke:var(--c0)}.s1{stroke:var(--c1)}.s2{stroke:var(--c2)}.s3{stroke:var(--c3)}
line.s0,line.s1,line.s2,line.s3{stroke-width:3}
.s1{stroke-dasharray:7 4}.s2{stroke-dasharray:2 3}.s3{stroke-dasharray:10 3 2 3}
.d0,.interval{stroke-dasharray:none}.d1{stroke-dasharray:7 4}.d2{stroke-dasharray:2 3}.d3{stroke-dasharray:10 3 2 3}
.heading{font-size:14px;font-weight:600}.frame{fill:none;stroke:var(--soft);stroke-width:1}
.detector{fill:var(--soft)}.removed{fill-opacity:.3}.ring{fill:none;stroke-width:2}line.flips{stroke-width:5}
.f0{fill:var(--c0)}.f1{fill:var(--c1)}.f2{fill:var(--c2)}.f3{fill:var(--c3)}
)css";

std::string line_class(std::size_t number) { return fmt::format("s{}", number % kColours); }

std::string polyline(const std::string &css, const std::string &points) {
  return fmt::format(R"(<polyline class="{}" points="{}"/>)", css, points);
}

std::string svg(const std::string &what, double height, const std::string &content) {
  return fmt::format(R"(<div class="plot"><svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg></div>)"
                     "\n",
                     kWidth, height, html_text(what), content);
}

std::string horizontal(const plot_axis &x, const std::vector<axis_tick> &ticks, const std::string &title,
                       plot_height of) {
  std::string out;
  for (const axis_tick &t : ticks) {
    const double furthest = kWidth - kCharacter / 2 * static_cast<double>(t.label.size()); // the label is not cut off
    out += fmt::format(R"(<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>)"
                       R"(<text x="{5:.1f}" y="{3}" text-anchor="middle">{4}</text>)",
                       x.at(t.value), of.top, of.bottom, of.bottom + 17, html_text(t.label),
                       std::min(x.at(t.value), furthest));
  }
  return out + fmt::format(R"(<text class="title" x="{}" y="{}" text-anchor="middle">{}</text>)", (kLeft + kRight) / 2,
                           of.bottom + 40, html_text(title));
}

std::string vertical(const plot_axis &y, const std::vector<axis_tick> &ticks, const std::string &title,
                     plot_height of) {
  std::string out;
  for (const axis_tick &t : ticks)
    out += fmt::format(R"(<line class="grid" x1="{1}" x2="{2}" y1="{0:.1f}" y2="{0:.1f}"/>)"
                       R"(<text x="{3}" y="{4:.1f}" text-anchor="end">{5}</text>)",
                       y.at(t.value), kLeft, kRight, kLeft - 6, y.at(t.value) + 4, html_text(t.label));
  return out +
         fmt::format(
             R"svg(<text class="title" transform="translate(14 {}) rotate(-90)" text-anchor="middle">{}</text>)svg",
             (of.top + of.bottom) / 2, html_text(title));
}

std::vector<axis_tick> ticks(const plot_axis &axis, std::size_t max_count, std::string (*label)(double)) {
  std::vector<axis_tick> all;
  for (const double value : axis.round_values(max_count))
    all.push_back({value, label(value)});
  return all;
}

std::string plot(const std::string &what, const std::string &content, const std::vector<named_line> &lines,
                 plot_height of) {
  constexpr double kSample = 26, kBetween = 22;
  constexpr auto kLongest = static_cast<std::size_t>((kRight - kLeft - kSample) / kCharacter);
  double x = kLeft, y = of.bottom + (kHeight - kBottom) + 4;
  std::string legend;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string &whole = lines[i].name;
    const std::string name = whole.size() <= kLongest ? whole : whole.substr(0, kLongest - 3) + "...";
    const double width = kSample + kCharacter * static_cast<double>(name.size());
    if (x != kLeft && x + width > kRight) {
      x = kLeft;
      y += kLegendRow;
    }
    legend += fmt::format(R"(<line class="{}" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>)"
                          R"(<text x="{:.1f}" y="{:.1f}">{}</text>)",
                          lines[i].css, x, x + 20, y, y, x + kSample, y + 4, html_text(name));
    x += width + kBetween;
  }
  return svg(what, y + 12, content + legend);
}

std::string html_text(const std::string &text) {
  std::string out;
  for (const char c : text)
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    default:
      out += c;
    }
  return out;
}

} // namespace cudaq::realtime::tools
