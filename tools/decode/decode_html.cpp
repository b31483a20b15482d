// SPDX-License-Identifier: Apache-2.0
// The report of `decode` as a page.
#include "tools/decode/decode.h"
#include "tools/html/html_page.h"

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

/// The rate of the shots that are kept over the share that is discarded, in steps of an eighth of a power of ten. ""
/// without true observables.
std::string gap_plot(const json &curve, std::uint64_t shots) {
  constexpr double kSteps = 8;
  plotted_curve line{"shots with the smallest gaps are discarded", 0, 0, {}};
  double last_step = -HUGE_VAL;
  for (const json &row : curve) {
    const auto kept = row["kept"].get<std::uint64_t>();
    if (!row.contains("wrong"))
      return "";
    const double share = static_cast<double>(shots - kept) / static_cast<double>(shots);
    const double step = share > 0 ? std::floor(kSteps * std::log10(share)) : last_step;
    if (kept == 0 || step == last_step)
      continue;
    last_step = step;
    const error_rate rate{row["wrong"].get<std::uint64_t>(), kept};
    const auto [low, high] = rate.interval_95();
    line.points.push_back({share, rate.rate(), rate.errors == 0 ? 0 : low, high});
  }
  return curve_plot(
      {line}, "share of discarded shots", "logical errors per kept shot",
      +[](double share) { return fmt::format("{:.3g} %", 100 * share); });
}

} // namespace

std::string decode_html(const json &report) {
  const auto number = [&](const char *name) { return report[name].get<std::uint64_t>(); };
  const std::string model = report["model"].get<std::string>(), predecoder = report["predecoder"].get<std::string>();
  const std::uint64_t shots = number("shots"), wall_ns = number("wall_ns");
  const auto wall = static_cast<double>(wall_ns);
  const bool is_checked = report.contains("logical_errors") || report.contains("differences_from_predictions");
  html_page page("Decoded shots of " + model, is_checked ? "" : "the shots came without observables and predictions");
  page.add("Shots",
           html_table({{"", "shots", "time", "shots/s", "threads"},
                       {(predecoder == "passthrough" ? "" : predecoder + "+") + report["decoder"].get<std::string>(),
                        std::to_string(shots), format_ns(wall),
                        format_rate(wall_ns == 0 ? 0 : static_cast<double>(shots) / wall * 1e9),
                        std::to_string(number("threads"))}}));
  page.add("Model", html_table({{"", "detectors", "observables"},
                                {model, std::to_string(number("detectors")), std::to_string(number("observables"))}}));
  page.add("Logical errors",
           html_paragraph(report.contains("logical_errors") ? error_rate{number("logical_errors"), shots}.text()
                                                            : "Not counted: the shots have no true observables."));
  if (report.contains("confidence"))
    page.add("Wrong and discarded shots", gap_plot(report["confidence"]["curve"], shots));
  if (report.contains("deadline_met"))
    page.add(
        "Deadlines",
        html_table({{"met", "missed", "late", "without a solution"},
                    {std::to_string(number("deadline_met")), std::to_string(number("deadline_missed")),
                     std::to_string(number("deadline_late")), std::to_string(number("deadline_without_solution"))}}));
  if (report.contains("race_members")) {
    std::vector<std::vector<std::string>> rows{{"member", "answers"}};
    for (const json &member : report["race_members"])
      rows.push_back({member["name"].get<std::string>(), std::to_string(member["answers"].get<std::uint64_t>())});
    page.add("Race", html_paragraph(report["decoder_name"].get<std::string>()) + html_table(rows));
  }
  if (report.contains("differences_from_predictions"))
    page.add("Answers", html_paragraph(fmt::format("{} of {} differ from those of --predictions.",
                                                   number("differences_from_predictions"), shots)));
  return page.text(report);
}

std::string decode_stream_html(const json &report, const latency_histogram &window_ns) {
  const auto number = [&](const char *name) { return report[name].get<std::uint64_t>(); };
  const std::uint64_t rounds = number("rounds"), wall_ns = number("wall_ns");
  const auto wall = static_cast<double>(wall_ns);
  const std::vector<plotted_latency> windows{{"windows", &window_ns}};
  constexpr measured_words kWords{"decode time", "windows"};
  html_page page("Decoded stream of " + report["model"].get<std::string>(),
                 report.contains("logical_errors") ? "" : "the stream came without observables (--obs_in)");
  page.add("Rounds",
           html_table({{"", "rounds", "final", "frames", "time", "rounds/s", "time of a round"},
                       {report["decoder"].get<std::string>(), std::to_string(rounds),
                        std::to_string(number("committed_rounds")), std::to_string(number("frames")), format_ns(wall),
                        format_rate(wall_ns == 0 ? 0 : static_cast<double>(rounds) / wall * 1e9),
                        format_ns(report["round_mean_ns"].get<double>())}}));
  page.add("Windows", html_paragraph(report["stream"].get<std::string>()) + latency_table(windows, kWords) +
                          histogram_plot(windows, kWords) + percentile_plot(windows, kWords));
  page.add("Observables", html_paragraph(report["committed_observables"].get<std::string>() +
                                         (!report.contains("logical_errors") ? ""
                                          : number("logical_errors") == 0    ? ", as in --obs_in"
                                                                             : ", which differs from --obs_in")));
  return page.text(report);
}

} // namespace cudaq::realtime::tools
