// SPDX-License-Identifier: Apache-2.0
// The report of a pipeline run as one HTML file: latency histogram and stages as SVG, and all figures.
#include "tools/pipeline/pipeline_report.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

constexpr int kWidth = 880, kHeight = 240, kLeft = 60, kBottom = 30;
constexpr int kBars = 80;

std::string escaped(const std::string &text) {
  std::string out;
  for (const char c : text)
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '"':
      out += "&quot;";
      break;
    default:
      out += c;
    }
  return out;
}

/// Bars of equal width on a logarithmic axis from the smallest to the largest latency.
std::string histogram_svg(const latency_histogram &h) {
  const double low = std::log(std::max<double>(1, static_cast<double>(h.min())));
  const double high = std::max(low + 0.01, std::log(static_cast<double>(h.max()) + 1));
  std::vector<std::uint64_t> bars(kBars);
  h.each_bucket([&](std::uint64_t value, std::uint64_t count) {
    const double at = (std::log(std::max<double>(1, static_cast<double>(value))) - low) / (high - low) * kBars;
    bars[static_cast<std::size_t>(std::clamp(at, 0.0, kBars - 1.0))] += count;
  });
  const double most = static_cast<double>(std::max<std::uint64_t>(1, *std::max_element(bars.begin(), bars.end())));
  const double step = static_cast<double>(kWidth - kLeft) / kBars, room = kHeight - kBottom - 10;
  std::string svg =
      fmt::format(R"(<svg viewBox="0 0 {} {}" role="img" aria-label="latency histogram">)", kWidth, kHeight);
  for (int i = 0; i < kBars; ++i) {
    const auto count = bars[static_cast<std::size_t>(i)];
    const double height = room * static_cast<double>(count) / most;
    if (count != 0)
      svg += fmt::format(
          R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="bar"><title>{}: {}</title></rect>)",
          kLeft + i * step, kHeight - kBottom - height, step - 1, height,
          format_ns(std::exp(low + (high - low) * (i + 0.5) / kBars)), count);
  }
  for (int i = 0; i <= 4; ++i)
    svg += fmt::format(R"(<text x="{}" y="{}" text-anchor="middle">{}</text>)", kLeft + (kWidth - kLeft - 30) * i / 4,
                       kHeight - 8, format_ns(std::exp(low + (high - low) * i / 4)));
  for (const double percent : {50.0, 99.0, 99.9}) {
    const double value = static_cast<double>(std::max<std::uint64_t>(1, h.percentile(percent)));
    const double x = kLeft + (std::log(value) - low) / (high - low) * (kWidth - kLeft);
    svg += fmt::format(R"(<line x1="{0:.1f}" x2="{0:.1f}" y1="12" y2="{1}" class="mark"/>)"
                       R"(<text x="{0:.1f}" y="10" text-anchor="middle">p{2:g}</text>)",
                       x, kHeight - kBottom, percent);
  }
  return svg + fmt::format(R"(<text x="4" y="24">{:.0f}</text></svg>)", most);
}

std::string stages_svg(const pipeline_result &r) {
  struct {
    const char *name, *colour;
    double ns;
  } const stages[] = {{"A dispatch and engine", "#4878a8", r.stage_a.mean()},
                      {"B matching", "#d08040", r.stage_b.mean()},
                      {"C consumer", "#70a060", r.stage_c.mean()}};
  const double sum = std::max(1.0, stages[0].ns + stages[1].ns + stages[2].ns);
  std::string svg =
      fmt::format(R"(<svg viewBox="0 0 {} 70" role="img" aria-label="stages of the mean latency">)", kWidth);
  double x = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const double width = kWidth * stages[i].ns / sum;
    svg += fmt::format(R"(<rect x="{:.1f}" y="0" width="{:.1f}" height="36" fill="{}"/>)"
                       R"(<text x="{}" y="56" fill="{}">{}: {} ({:.0f} %)</text>)",
                       x, width, stages[i].colour, 290 * i, stages[i].colour, stages[i].name, format_ns(stages[i].ns),
                       100 * stages[i].ns / sum);
    x += width;
  }
  return svg + "</svg>";
}

/// A table row for every figure of the report. A figure inside an object is named <object>.<name>.
std::string rows(const json &figures, const std::string &prefix) {
  std::string out;
  for (const auto &[name, value] : figures.items()) {
    if (value.is_object())
      out += rows(value, prefix + name + ".");
    else
      out += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", escaped(prefix + name),
                         escaped(value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return out;
}

} // namespace

void write_pipeline_html(const std::string &path, const json &report, const pipeline_result &r) {
  if (path.empty())
    return;
  write_file("--html", path, [&](std::ostream &file) {
    file << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>QEC pipeline</title><style>\n"
            "body{font:14px sans-serif;max-width:900px;margin:2em auto}"
            "svg{width:100%;font-size:12px}.bar{fill:#4878a8}\n"
            ".mark{stroke:#a03030;stroke-dasharray:4}td{padding:1px 12px 1px 0;font-family:monospace}\n"
            "</style></head><body>\n"
         << fmt::format("<h1>QEC pipeline: {}, {} on the {}</h1>\n",
                        escaped(report["config"]["name"].get<std::string>()),
                        escaped(report["config"]["engine"].get<std::string>()),
                        escaped(report["config"]["device"].get<std::string>()))
         << fmt::format("<p>{} submitted, {} completed, {} timed out; {} shots/s; {}</p>\n", r.submitted, r.completed,
                        r.timed_out, format_rate(r.shots_per_second()),
                        r.problems.empty() ? "every answer is right" : "FAILED")
         << fmt::format("<p>{}</p>\n", escaped(report["accuracy_warning"].get<std::string>()))
         << "<h2>Latency</h2>\n<p>" << latency_line(r.from_submit) << "</p>\n"
         << histogram_svg(r.from_submit) << "\n<h2>Stages of the mean latency</h2>\n"
         << stages_svg(r) << "\n<h2>All figures</h2>\n<table>\n"
         << rows(report, "") << "</table></body></html>\n";
  });
}

} // namespace cudaq::realtime::tools
