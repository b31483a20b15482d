// SPDX-License-Identifier: Apache-2.0
#include "tools/html/html_plots.h"

#include "tools/common/report.h"
#include "tools/html/plot_axis.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>

namespace cudaq::realtime::tools {
namespace {

// The drawing area, in the units of the SVG.
constexpr double kWidth = 760, kHeight = 300;
constexpr double kLeft = 74, kRight = 736, kTop = 40, kBottom = 246;
constexpr std::size_t kColours = 4, kBars = 90;
constexpr double kCharacter = 7; ///< width of a character, rounded up
constexpr double kHalf = 0.5;    ///< low end of an axis of counts: below a single request

std::string svg(const std::string &what, double height, const std::string &content) {
  return fmt::format(R"(<div class="plot"><svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg></div>)"
                     "\n",
                     kWidth, height, html_text(what), content);
}

/// Grid lines, labels and the title of the horizontal axis.
std::string horizontal(const plot_axis &x, const std::vector<axis_tick> &ticks, const std::string &title) {
  std::string out;
  for (const axis_tick &t : ticks) {
    const double furthest = kWidth - kCharacter / 2 * static_cast<double>(t.label.size()); // the label is not cut off
    out +=
        fmt::format(R"(<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>)"
                    R"(<text x="{5:.1f}" y="{3}" text-anchor="middle">{4}</text>)",
                    x.at(t.value), kTop, kBottom, kBottom + 17, html_text(t.label), std::min(x.at(t.value), furthest));
  }
  return out + fmt::format(R"(<text class="title" x="{}" y="{}" text-anchor="middle">{}</text>)", (kLeft + kRight) / 2,
                           kBottom + 40, html_text(title));
}

std::string vertical(const plot_axis &y, const std::vector<axis_tick> &ticks, const std::string &title) {
  std::string out;
  for (const axis_tick &t : ticks)
    out += fmt::format(R"(<line class="grid" x1="{1}" x2="{2}" y1="{0:.1f}" y2="{0:.1f}"/>)"
                       R"(<text x="{3}" y="{4:.1f}" text-anchor="end">{5}</text>)",
                       y.at(t.value), kLeft, kRight, kLeft - 6, y.at(t.value) + 4, html_text(t.label));
  return out +
         fmt::format(
             R"svg(<text class="title" transform="translate(14 {}) rotate(-90)" text-anchor="middle">{}</text>)svg",
             (kTop + kBottom) / 2, html_text(title));
}

std::vector<axis_tick> ticks(const plot_axis &axis, std::size_t most, std::string (*label)(double)) {
  std::vector<axis_tick> all;
  for (const double value : axis.round_values(most))
    all.push_back({value, label(value)});
  return all;
}

/// Names in a row above the plot, each after a sample of its line. The first one has the colour `first`.
std::string legend(const std::vector<std::string> &names, std::size_t first = 0) {
  std::string out;
  const double each = (kRight - kLeft) / static_cast<double>(std::max<std::size_t>(names.size(), 1));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double x = kLeft + each * static_cast<double>(i);
    out +=
        fmt::format(R"(<line class="s{}" x1="{:.1f}" x2="{:.1f}" y1="10" y2="10"/><text x="{:.1f}" y="14">{}</text>)",
                    (first + i) % kColours, x, x + 20, x + 26, html_text(names[i]));
  }
  return out;
}

std::vector<std::string> names_of(const std::vector<plotted_latency> &series) {
  std::vector<std::string> names;
  for (const plotted_latency &s : series)
    names.push_back(s.name);
  return names;
}

std::string polyline(std::size_t colour, const std::string &points) {
  return fmt::format(R"(<polyline class="s{}" points="{}"/>)", colour % kColours, points);
}

struct value_range {
  double low = 0, high = 0; ///< 0: no values
  void add(double from, double to) {
    low = low == 0 ? std::max(1.0, from) : std::min(low, std::max(1.0, from));
    high = std::max(high, to);
  }
};

value_range range_of(const std::vector<plotted_latency> &series) {
  value_range all;
  for (const plotted_latency &s : series)
    if (s.histogram->count() != 0)
      all.add(static_cast<double>(s.histogram->min()), static_cast<double>(s.histogram->max()));
  return all;
}

std::vector<double> bars_of(const latency_histogram &h, const plot_axis &x) {
  std::vector<double> bars(kBars);
  h.each_bucket([&](std::uint64_t value, std::uint64_t count) {
    const double part = (x.at(static_cast<double>(value)) - kLeft) / (kRight - kLeft);
    bars[std::min(static_cast<std::size_t>(part * kBars), kBars - 1)] += static_cast<double>(count);
  });
  return bars;
}

/// Marks of the percentiles: lines, with names in a row above the plot. Near names move apart.
std::string percentile_marks(const latency_histogram &h, const plot_axis &x) {
  constexpr double kNameWidth = 40;
  struct mark {
    double percent, at, name_at;
  } marks[] = {{50, 0, 0}, {99, 0, 0}, {99.9, 0, 0}};
  double free = kLeft;
  for (mark &m : marks) {
    m.at = x.at(static_cast<double>(h.percentile(m.percent)));
    m.name_at = std::max(m.at, free);
    free = m.name_at + kNameWidth;
  }
  double end = kRight;
  for (auto m = std::rbegin(marks); m != std::rend(marks); ++m) {
    m->name_at = std::min(m->name_at, end);
    end = m->name_at - kNameWidth;
  }
  std::string out;
  for (const mark &m : marks)
    out += fmt::format(R"(<line class="mark" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>)"
                       R"(<text x="{3:.1f}" y="{4}" text-anchor="middle">p{5:g}</text>)",
                       m.at, kTop, kBottom, m.name_at, kTop - 5, m.percent);
  return out;
}

} // namespace

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

std::string histogram_plot(const std::vector<plotted_latency> &series) {
  const value_range range = range_of(series);
  if (range.high == 0)
    return "";
  const plot_axis x = plot_axis::logarithmic(range.low, range.high, kLeft, kRight);
  std::vector<std::vector<double>> bars;
  double most = 1;
  for (const plotted_latency &s : series) {
    bars.push_back(bars_of(*s.histogram, x));
    most = std::max(most, std::ranges::max(bars.back()));
  }
  const plot_axis y = plot_axis::logarithmic(kHalf, 1.2 * most, kBottom, kTop);
  std::string out = horizontal(x, ticks(x, 8, &time_label), "latency (logarithmic)") +
                    vertical(y, ticks(y, 6, &count_label), "requests (logarithmic)") + legend(names_of(series));
  const double width = (kRight - kLeft) / kBars;
  for (std::size_t s = 0; s < series.size(); ++s) {
    std::string points;
    for (std::size_t i = 0; i < kBars; ++i)
      points += fmt::format("{0:.1f},{2:.1f} {1:.1f},{2:.1f} ", kLeft + width * static_cast<double>(i),
                            kLeft + width * static_cast<double>(i + 1), y.at(std::max(bars[s][i], kHalf)));
    if (s == 0)
      out +=
          fmt::format(R"(<polygon class="filled" points="{},{} {}{},{}"/>)", kLeft, kBottom, points, kRight, kBottom);
    out += polyline(s, points);
  }
  return svg("latency histogram", kHeight, out + percentile_marks(*series.front().histogram, x));
}

std::string percentile_plot(const std::vector<plotted_latency> &series) {
  const value_range range = range_of(series);
  if (range.high == 0)
    return "";
  std::uint64_t most = 10;
  for (const plotted_latency &s : series)
    most = std::max(most, s.histogram->count());
  // 1 / (1 - percentile): 1 at the smallest value, the number of values at the largest one.
  const plot_axis x = plot_axis::logarithmic(1, static_cast<double>(most), kLeft, kRight);
  const plot_axis y = plot_axis::logarithmic(range.low, range.high, kBottom, kTop);
  std::vector<axis_tick> labels{{1, "0 %"}, {2, "50 %"}};
  std::string nines = "90 %";
  for (double value = 10; value <= static_cast<double>(most); value *= 10) {
    labels.push_back({value, nines});
    nines = value == 10 ? "99 %" : value == 100 ? "99.9 %" : nines.substr(0, nines.size() - 2) + "9 %";
  }
  std::string out = horizontal(x, labels, "percentile (logarithmic towards 100 %)") +
                    vertical(y, ticks(y, 7, &time_label), "latency (logarithmic)") + legend(names_of(series));
  for (std::size_t s = 0; s < series.size(); ++s) {
    const latency_histogram &h = *series[s].histogram;
    std::string points;
    std::uint64_t seen = 0;
    double last_x = -1;
    h.each_bucket([&](std::uint64_t value, std::uint64_t count) {
      const double begin = x.at(static_cast<double>(h.count()) / static_cast<double>(h.count() - seen));
      seen += count;
      const double end =
          x.at(seen == h.count() ? static_cast<double>(h.count())
                                 : static_cast<double>(h.count()) / static_cast<double>(h.count() - seen));
      if (end - last_x < 0.3 && seen != h.count()) // closer than a pixel
        return;
      last_x = end;
      points += fmt::format("{0:.1f},{2:.1f} {1:.1f},{2:.1f} ", begin, end, y.at(static_cast<double>(value)));
    });
    out += polyline(s, points);
  }
  return svg("latency over percentile", kHeight, out);
}

std::string timeline_plot(const run_timeline &timeline) {
  value_range range;
  double most = 0;
  const double part_s = static_cast<double>(timeline.part_ns()) * 1e-9;
  for (std::size_t i = 0; i < timeline.size(); ++i)
    if (timeline[i].count != 0) {
      range.add(timeline[i].mean(), static_cast<double>(timeline[i].max));
      most = std::max(most, static_cast<double>(timeline[i].count) / part_s);
    }
  if (range.high == 0)
    return "";
  const auto seconds = [](double s) { return fmt::format("{:g}", s); };
  const plot_axis x = plot_axis::linear(0, part_s * static_cast<double>(timeline.size()), kLeft, kRight);
  const plot_axis latency = plot_axis::logarithmic(range.low, range.high, kBottom, kTop);
  const plot_axis rate = plot_axis::linear(0, most, kBottom, kTop);
  std::vector<axis_tick> times;
  for (const double t : x.round_values(8))
    times.push_back({t, seconds(t)});
  std::string mean, longest, rates;
  for (std::size_t i = 0; i < timeline.size(); ++i) {
    const double at = x.at((static_cast<double>(i) + 0.5) * part_s);
    rates += fmt::format("{:.1f},{:.1f} ", at, rate.at(static_cast<double>(timeline[i].count) / part_s));
    if (timeline[i].count == 0)
      continue;
    mean += fmt::format("{:.1f},{:.1f} ", at, latency.at(timeline[i].mean()));
    longest += fmt::format("{:.1f},{:.1f} ", at, latency.at(static_cast<double>(timeline[i].max)));
  }
  const std::string title = "time since the first answer, in s";
  return svg("latency over time", kHeight,
             horizontal(x, times, title) + vertical(latency, ticks(latency, 7, &time_label), "latency (logarithmic)") +
                 legend({"mean", "longest"}) + polyline(0, mean) + polyline(1, longest)) +
         svg("rate over time", kHeight,
             horizontal(x, times, title) + vertical(rate, ticks(rate, 5, &count_label), "answers per second") +
                 legend({"rate"}, 2) + polyline(2, rates));
}

std::string stages_plot(const std::vector<plotted_stage> &stages) {
  double sum = 0;
  for (const plotted_stage &s : stages)
    sum += s.ns;
  if (sum <= 0)
    return "";
  std::string out;
  double x = kLeft;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const double part = stages[i].ns / sum, y = 62 + 20 * static_cast<double>(i);
    out += fmt::format(R"(<rect class="f{0}" x="{1:.1f}" y="12" width="{2:.1f}" height="30"/>)"
                       R"(<rect class="f{0}" x="{3}" y="{4}" width="12" height="12"/>)"
                       R"(<text x="{5}" y="{6}">{7}: {8}, {9:.0f} %</text>)",
                       i % kColours, x, (kRight - kLeft) * part, kLeft, y, kLeft + 18, y + 11,
                       html_text(stages[i].name), format_ns(stages[i].ns), 100 * part);
    x += (kRight - kLeft) * part;
  }
  return svg("stages of the mean latency", 64 + 20 * static_cast<double>(stages.size()), out);
}

} // namespace cudaq::realtime::tools
