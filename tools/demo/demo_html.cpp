// SPDX-License-Identifier: Apache-2.0
// The report of the demo as a page.
#include "tools/demo/demo_report.h"
#include "tools/html/html_page.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

std::string errors_table(const std::vector<pass_result> &passes, const shot_plan &plan, const std::string &decoder) {
  if (!plan.shots().has_observables())
    return html_paragraph("Not counted: the shots have no true observables.");
  const bool golden = plan.shots().has_predictions();
  std::vector<std::vector<std::string>> rows{{"", fmt::format("logical errors of {}, with 95 % interval", decoder)}};
  if (golden)
    rows.front().push_back(fmt::format("of {}", plan.predictions_name()));
  for (const pass_result &r : passes) {
    rows.push_back({r.config.label, logical_errors(r, plan).text()});
    if (golden)
      rows.back().push_back(reference_rate(r, plan).text());
  }
  std::string text = html_table(rows);
  if (const std::string reference = reference_text(plan, decoder); !reference.empty())
    text += html_paragraph(reference + ".");
  if (const std::string warning = reference_warning(plan, decoder); !warning.empty())
    text += html_paragraph("Warning: " + warning + ".");
  return text;
}

std::string throughput_table(const std::vector<pass_result> &passes) {
  std::vector<std::vector<std::string>> rows{{"", "sent", "answered", "shots/s", "wrong", "waited for a slot"}};
  for (const pass_result &r : passes)
    rows.push_back({r.config.label, std::to_string(r.sent), std::to_string(r.answered),
                    format_rate(r.shots_per_second()), std::to_string(r.mismatches + r.faults + r.bad_status),
                    std::to_string(r.stalls)});
  return html_table(rows);
}

} // namespace

std::string demo_html(const json &report, const std::vector<pass_result> &passes, const shot_plan &plan) {
  const auto decoder = report["decoder"]["name"].get<std::string>();
  html_page page(fmt::format("Demo: {}, decoder {}", plan.shots().name, decoder));
  std::vector<plotted_latency> latencies;
  std::vector<plotted_latency> rows;
  for (const pass_result &r : passes) {
    const std::string load = r.config.cadence_ns == 0
                                 ? "as fast as possible"
                                 : "a shot every " + format_ns(static_cast<double>(r.config.cadence_ns));
    latencies.push_back({fmt::format("{}: {}", r.config.label, load), &r.from_sent});
    rows.push_back({r.config.label, &r.from_sent});
    if (r.config.cadence_ns != 0)
      rows.push_back({r.config.label + ", since due", &r.from_due});
  }
  page.add("Shots", throughput_table(passes) +
                        html_paragraph(fmt::format("Answers are compared with {}.", expected_text(plan))));
  page.add("Logical errors", errors_table(passes, plan, decoder));
  page.add("Latency histogram", histogram_plot(latencies));
  page.add("Latency percentiles", percentile_plot(latencies) + latency_table(rows));
  for (const pass_result &r : passes)
    page.add("Timeline of " + r.config.label, timeline_plot(r.timeline));
  return page.text(report);
}

} // namespace cudaq::realtime::tools
