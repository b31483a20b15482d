// SPDX-License-Identifier: Apache-2.0
// The report of `device` and `graph` as a page.
#include "benchmarks/common/bench_report.h"
#include "tools/html/html_page.h"

#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

bool in_ns(const bench_result &r) { return std::string_view(r.of.unit) == "ns"; }

std::string main_text(const measured_case &c, const bench_case &of) {
  if (of.metric != bench_metric::p50_ratio)
    return format_rate(c.total.per_second()) + "/s";
  const auto p50 = static_cast<double>(c.total.per_exchange.percentile(50));
  return std::string_view(of.unit) == "ns" ? format_ns(p50) : fmt::format("{:.0f} cycles", p50);
}

std::string cases_table(const std::vector<bench_result> &results) {
  std::vector<std::vector<std::string>> rows{{"case", "what", "floor", "measured", "ratio"}};
  for (const bench_result &r : results) {
    const double ratio =
        r.of.metric == bench_metric::rate ? rate_ratio("", r.ours, r.floor).pooled : ratio_of(r).pooled;
    rows.push_back(
        {r.of.name, r.of.what, main_text(r.floor, r.of), main_text(r.ours, r.of), fmt::format("{:.2f}", ratio)});
  }
  return results.empty() ? "" : html_table(rows);
}

std::string curve_table(const bench_curve &curve) {
  std::vector<std::vector<std::string>> rows{{curve.x_name, "floor", "measured", "ratio", "p99", "max"}};
  const auto figure = [&](const measured_case &c) {
    return curve.rate ? format_rate(c.total.per_second()) + "/s"
                      : format_ns(static_cast<double>(c.total.per_exchange.percentile(50)));
  };
  for (const curve_point &p : curve.points) {
    const latency_histogram &h = p.ours.total.per_exchange;
    const ratio_line ratio = !p.floor     ? ratio_line{""}
                             : curve.rate ? rate_ratio("", p.ours, *p.floor)
                                          : latency_ratio("", p.ours, *p.floor);
    rows.push_back({p.x, p.floor ? figure(*p.floor) : "-", figure(p.ours),
                    p.floor ? fmt::format("{:.2f}", ratio.pooled) : "-",
                    format_ns(static_cast<double>(h.percentile(99))), format_ns(static_cast<double>(h.max()))});
  }
  return html_table(rows);
}

} // namespace

std::string bench_html(const json &report, const std::vector<bench_result> &results,
                       const std::vector<bench_curve> &curves) {
  html_page page(fmt::format("Benchmark {} on {}", report["command"].get<std::string>(),
                             report["gpu"]["name"].get<std::string>()));
  page.add("Method", html_paragraph(report["method"]["what"].get<std::string>()));
  page.add("Cases and their floors", cases_table(results));
  for (const bench_result &r : results) {
    if (!in_ns(r))
      continue; // the axes of the plots have units of time
    const std::vector<plotted_latency> both{{"measured", &r.ours.total.per_exchange},
                                            {"floor", &r.floor.total.per_exchange}};
    page.add(fmt::format("{}: {}", r.of.name, r.of.what), percentile_plot(both) + latency_table(both));
  }
  for (const bench_curve &curve : curves)
    page.add(curve.what, curve_table(curve));
  return page.text(report);
}

} // namespace cudaq::realtime::tools
