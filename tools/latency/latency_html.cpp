// SPDX-License-Identifier: Apache-2.0
// The report of `latency` as a page.
#include "tools/html/html_page.h"
#include "tools/latency/latency_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

std::vector<plotted_latency> series(const std::vector<latency_case> &cases, std::initializer_list<const char *> names) {
  std::vector<plotted_latency> all;
  for (const char *name : names)
    if (const auto c = std::ranges::find(cases, name, &latency_case::name); c != cases.end())
      all.push_back({c->what, &c->total.per_exchange});
  return all;
}

std::string ratios(const json &report) {
  std::vector<std::vector<std::string>> rows{{"", "ratio", "rounds: least", "median", "most"}};
  for (const json &r : report["ratios"]) {
    std::vector<std::string> row{r["what"].get<std::string>()};
    for (const char *name : {"ratio", "round_min", "round_median", "round_max"})
      row.push_back(r.contains(name) && r[name].is_number() ? fmt::format("{:.2f}", r[name].get<double>()) : "");
    rows.push_back(std::move(row));
  }
  return html_table(rows);
}

} // namespace

std::string latency_html(const json &report, const std::vector<latency_case> &cases) {
  html_page page("Round trips of HOST_CALL, compared with a floor");
  page.add("Method", html_paragraph(report["method"]["what"].get<std::string>()));
  std::vector<plotted_latency> rows;
  for (const latency_case &c : cases)
    rows.push_back({c.what, &c.total.per_exchange});
  page.add("All cases", latency_table(rows));
  page.add("Ratios to the floors", ratios(report));
  const auto closed = series(cases, {kHostClosed32, kRingClosed32, kTwoFlags32});
  const auto piped = series(cases, {kHostPiped32, kRingPiped32});
  page.add("Closed loop, 32 B: histogram", histogram_plot(closed));
  page.add("Closed loop, 32 B: percentiles", percentile_plot(closed));
  page.add("Pipelined, 32 B: histogram", histogram_plot(piped));
  page.add("Pipelined, 32 B: percentiles", percentile_plot(piped));
  return page.text(report);
}

} // namespace cudaq::realtime::tools
