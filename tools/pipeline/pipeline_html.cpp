// SPDX-License-Identifier: Apache-2.0
// The report of a pipeline run as a page.
#include "tools/html/html_page.h"
#include "tools/pipeline/pipeline_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

std::string errors_text(const pipeline_shots &shots) {
  const paired_errors &e = shots.errors();
  if (e.shots == 0)
    return "Not counted: the shots have no true observables.";
  std::string text = fmt::format("{}. The matcher alone: {}.", error_rate{e.with, e.shots}.text(),
                                 error_rate{e.without, e.shots}.text());
  if (e.with != 0 && e.without != 0)
    text += fmt::format(" Ratio {:.2f} (95 %: {:.2f} to {:.2f}).", e.ratio(), e.ratio_interval().low,
                        e.ratio_interval().high);
  return text;
}

} // namespace

std::string pipeline_html(const json &report, const pipeline_shots &shots, const pipeline_result &r) {
  const json &config = report["config"];
  html_page page(fmt::format("QEC pipeline: {}, {} on the {}, {}", config["name"].get<std::string>(), shots.engine(),
                             config["device"].get<std::string>(), shots.decoder_name()));
  page.add("Shots", html_paragraph(fmt::format("{} submitted, {} completed, {} timed out; {} shots/s; {} worker{}, {} "
                                               "slots.",
                                               r.submitted, r.completed, r.timed_out, format_rate(r.shots_per_second()),
                                               config["workers"].get<int>(), config["workers"] == 1 ? "" : "s",
                                               config["slots"].get<int>())) +
                        (r.undecided.total() == 0
                             ? ""
                             : html_paragraph(fmt::format("No answer: {}.", r.undecided.text(r.submitted)))));
  page.add("Logical errors",
           html_paragraph(errors_text(shots)) + html_paragraph(report["accuracy_warning"].get<std::string>()));
  std::vector<plotted_latency> latencies{{"since the submission", &r.from_submit}};
  if (r.from_due.max() != r.from_submit.max()) // there was a rate
    latencies.push_back({"since due", &r.from_due});
  page.add("Latency histogram", histogram_plot(latencies));
  page.add("Latency percentiles", percentile_plot(latencies) + latency_table(latencies));
  page.add("Stages of the mean latency",
           stages_plot({{"A dispatch and engine", r.stage_a.mean()},
                        {"B matching", r.stage_b.mean()},
                        {"C consumer", r.stage_c.mean()}}) +
               latency_table(
                   {{"A dispatch and engine", &r.stage_a}, {"B matching", &r.stage_b}, {"C consumer", &r.stage_c}}));
  page.add("Timeline", timeline_plot(r.timeline));
  return page.text(report);
}

} // namespace cudaq::realtime::tools
