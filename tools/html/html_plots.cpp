// SPDX-License-Identifier: Apache-2.0
#include "tools/html/html_plots.h"

#include "tools/common/report.h"
#include "tools/html/plot_frame.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace cudaq::realtime::tools {
namespace {

constexpr double kMaxBars = 60; ///< about; of a histogram, and parts of a timeline
constexpr double kHalf = 0.5;   ///< low end of an axis of counts: below a single request

std::vector<named_line> names_of(const std::vector<plotted_latency> &series) {
  std::vector<named_line> names;
  for (const plotted_latency &s : series)
    names.push_back({s.name, line_class(names.size())});
  return names;
}

std::string logarithmic_title(const char *what) { return std::string(what) + " (logarithmic)"; }

/// A horizontal part of a line.
std::string step(double from, double to, double y) {
  return fmt::format("{0:.1f},{2:.1f} {1:.1f},{2:.1f} ", from, to, y);
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

/// Bars of a logarithmic axis: each decade has the same number of them, so that powers of ten are edges. They are wider
/// than a nanosecond.
struct bar_edges {
  double each_decade = 1, first = 0; ///< the lowest edge is 10^(first / each_decade)
  std::size_t bars = 1;

  explicit bar_edges(const value_range &range) {
    const double decades = std::log10(range.high / range.low);
    for (const double n : {2, 5, 10, 20, 50, 100})
      if (n * decades <= kMaxBars && range.low * (std::pow(10, 1 / n) - 1) >= 1)
        each_decade = n;
    first = std::floor(std::log10(range.low) * each_decade + 1e-9);
    bars = static_cast<std::size_t>(std::floor(std::log10(range.high) * each_decade + 1e-9) - first) + 1;
  }
  [[nodiscard]] double edge(std::size_t i) const {
    return std::pow(10, (first + static_cast<double>(i)) / each_decade);
  }
  [[nodiscard]] std::vector<double> counts(const latency_histogram &h) const {
    std::vector<double> all(bars);
    h.each_bucket([&](std::uint64_t value, std::uint64_t count) {
      const double at = std::log10(std::max(1.0, static_cast<double>(value))) * each_decade + 1e-9 - first;
      all[std::min(static_cast<std::size_t>(std::max(at, 0.0)), bars - 1)] += static_cast<double>(count);
    });
    return all;
  }
};

/// The parts of a timeline, joined to fewer ones that take a round time. With few answers there are few parts, so that
/// the rate does not show single answers: at most 2 n^(1/3) parts, Rice's rule.
struct joined_parts {
  std::vector<run_timeline::part> parts;
  double part_ns;

  explicit joined_parts(const run_timeline &recorded) : part_ns(static_cast<double>(recorded.part_ns())) {
    double answers = 0;
    for (std::size_t i = 0; i < recorded.size(); ++i)
      answers += static_cast<double>(recorded[i].count);
    const double max_bars = std::clamp(2 * std::cbrt(answers), 1.0, kMaxBars);
    const std::size_t joined = round_number(static_cast<double>(recorded.size()) / max_bars, recorded.part_ns());
    parts.resize((recorded.size() + joined - 1) / joined);
    for (std::size_t i = 0; i < recorded.size(); ++i) {
      run_timeline::part &p = parts[i / joined];
      p = {p.count + recorded[i].count, p.sum + recorded[i].sum, std::max(p.max, recorded[i].max)};
    }
    part_ns *= static_cast<double>(joined);
  }
  [[nodiscard]] double edge(std::size_t i) const { return part_ns * static_cast<double>(i); }
  [[nodiscard]] double per_second(const run_timeline::part &p) const {
    return static_cast<double>(p.count) / (part_ns * 1e-9);
  }

private:
  /// At least `least` parts of 1 or 2 times a power of ten, that together take 1, 2 or 5 times a power of ten.
  static std::size_t round_number(double least, std::uint64_t part_ns) {
    while (part_ns >= 10)
      part_ns /= 10;
    for (std::size_t power = 1;; power *= 10)
      for (const std::size_t digit : {1U, 2U, 5U})
        if (digit * power % part_ns == 0 && static_cast<double>(digit * power / part_ns) >= least)
          return digit * power / part_ns;
  }
};

/// Marks of the percentiles: lines, with names above the plot. Names that would touch become one.
std::string percentile_marks(const latency_histogram &h, const plot_axis &x) {
  struct mark_name {
    std::string text;
    double from, to; ///< its marks
    /// Half of its width, and of a blank between two names.
    [[nodiscard]] double half() const { return kCharacter / 2 * static_cast<double>(text.size() + 1); }
    /// Right of the labels of the vertical axis: one of them may be as high as the names.
    [[nodiscard]] double middle() const { return std::clamp((from + to) / 2, kLeft + half(), kWidth - half()); }
  };
  std::vector<mark_name> names;
  std::string out;
  for (const double percent : {50.0, 99.0, 99.9}) {
    const double at = x.at(static_cast<double>(h.percentile(percent)));
    out += fmt::format(R"(<line class="mark" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>)", at, kTop, kBottom);
    mark_name name{fmt::format("p{:g}", percent), at, at};
    while (!names.empty() && names.back().middle() + names.back().half() > name.middle() - name.half()) {
      name = {names.back().text + ", " + name.text, names.back().from, name.to};
      names.pop_back();
    }
    names.push_back(std::move(name));
  }
  for (const mark_name &n : names)
    out += fmt::format(R"(<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", n.middle(), kTop - 6, n.text);
  return out;
}

} // namespace

std::string histogram_plot(const std::vector<plotted_latency> &series, const measured_words &words) {
  const value_range range = range_of(series);
  if (range.high == 0)
    return "";
  const bar_edges edges(range);
  const plot_axis x = plot_axis::logarithmic(edges.edge(0), edges.edge(edges.bars), kLeft, kRight);
  std::vector<std::vector<double>> bars;
  double max_count = 1;
  for (const plotted_latency &s : series) {
    bars.push_back(edges.counts(*s.histogram));
    max_count = std::max(max_count, std::ranges::max(bars.back()));
  }
  const plot_axis y = plot_axis::logarithmic(kHalf, 1.2 * max_count, kBottom, kTop);
  std::string out = horizontal(x, ticks(x, 8, &time_label), logarithmic_title(words.time)) +
                    vertical(y, ticks(y, 6, &count_label), logarithmic_title(words.things));
  for (std::size_t s = 0; s < series.size(); ++s) {
    std::string points;
    for (std::size_t i = 0; i < edges.bars; ++i)
      points += step(x.at(edges.edge(i)), x.at(edges.edge(i + 1)), y.at(std::max(bars[s][i], kHalf)));
    if (s == 0)
      out +=
          fmt::format(R"(<polygon class="filled" points="{},{} {}{},{}"/>)", kLeft, kBottom, points, kRight, kBottom);
    out += polyline(line_class(s), points);
  }
  return plot(std::string(words.time) + " histogram", out + percentile_marks(*series.front().histogram, x),
              names_of(series));
}

std::string percentile_plot(const std::vector<plotted_latency> &series, const measured_words &words) {
  const value_range range = range_of(series);
  if (range.high == 0)
    return "";
  std::uint64_t max_count = 10;
  for (const plotted_latency &s : series)
    max_count = std::max(max_count, s.histogram->count());
  // 1 / (1 - percentile): 1 at the smallest value, the number of values at the largest one.
  const plot_axis x = plot_axis::logarithmic(1, static_cast<double>(max_count), kLeft, kRight);
  const plot_axis y = plot_axis::logarithmic(range.low, range.high, kBottom, kTop);
  std::vector<axis_tick> labels{{1, "0 %"}, {2, "50 %"}};
  std::string nines = "90 %";
  for (double value = 10; value <= static_cast<double>(max_count); value *= 10) {
    labels.push_back({value, nines});
    nines = value == 10 ? "99 %" : value == 100 ? "99.9 %" : nines.substr(0, nines.size() - 2) + "9 %";
  }
  std::string out = horizontal(x, labels, "percentile (logarithmic towards 100 %)") +
                    vertical(y, ticks(y, 7, &time_label), logarithmic_title(words.time));
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
      points += step(begin, end, y.at(static_cast<double>(value)));
    });
    out += polyline(line_class(s), points);
  }
  return plot(std::string(words.time) + " over percentile", out, names_of(series));
}

std::string timeline_plot(const run_timeline &recorded, const measured_words &words) {
  const joined_parts timeline(recorded);
  value_range range;
  double max_rate = 0;
  for (const run_timeline::part &p : timeline.parts)
    if (p.count != 0) {
      range.add(p.mean(), static_cast<double>(p.max));
      max_rate = std::max(max_rate, timeline.per_second(p));
    }
  if (range.high == 0)
    return "";
  const plot_axis x = plot_axis::linear(0, timeline.edge(timeline.parts.size()), kLeft, kRight);
  const plot_axis latency = plot_axis::logarithmic(range.low, range.high, kBottom, kTop);
  const plot_axis rate = plot_axis::linear(0, max_rate, kBottom, kTop);
  std::string mean, longest, rates, lines;
  const auto end_line = [&] { // a part without answers has no latency: the line is interrupted
    if (!mean.empty())
      lines += polyline(line_class(0), std::exchange(mean, "")) + polyline(line_class(1), std::exchange(longest, ""));
  };
  for (std::size_t i = 0; i < timeline.parts.size(); ++i) {
    const run_timeline::part &p = timeline.parts[i];
    const double from = x.at(timeline.edge(i)), to = x.at(timeline.edge(i + 1));
    rates += step(from, to, rate.at(timeline.per_second(p)));
    if (p.count == 0) {
      end_line();
      continue;
    }
    mean += step(from, to, latency.at(p.mean()));
    longest += step(from, to, latency.at(static_cast<double>(p.max)));
  }
  end_line();
  const std::string title = "time since the first answer, in parts of " + time_label(timeline.part_ns);
  const std::string times = horizontal(x, ticks(x, 8, &time_label), title);
  return plot(std::string(words.time) + " over time",
              times + vertical(latency, ticks(latency, 7, &time_label), logarithmic_title(words.time)) + lines,
              {{"mean", line_class(0)}, {"longest", line_class(1)}}) +
         plot("rate over time",
              times + vertical(rate, ticks(rate, 5, &count_label), std::string(words.things) + " per second") +
                  polyline(line_class(0), rates),
              {{"rate", line_class(0)}});
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
