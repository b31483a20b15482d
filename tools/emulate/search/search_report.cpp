// SPDX-License-Identifier: Apache-2.0
#include "tools/emulate/search/search_report.h"

#include "tools/html/html_page.h"
#include "tools/html/html_plots.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

std::string ns_text(std::uint64_t ns) { return format_ns(static_cast<double>(ns)); }

/// The time between two rounds at a rate; 0: none.
double cycle_ns(double rate) { return rate == 0 ? 0 : 1e9 / rate; }

std::vector<std::string> head_cells(const search_names &names) {
  std::vector<std::string> cells{"offered/s", "answered/s", names.played, "p50", "p99", "p99.9", "max", "holds"};
  if (names.has_cycle)
    cells.insert(cells.begin(), "cycle");
  return cells;
}

std::vector<std::string> cells_of(const rate_trial &t, const search_names &names) {
  std::vector<std::string> cells{format_rate(t.rate),      format_rate(t.answered),
                                 std::to_string(t.played), ns_text(t.p50_ns),
                                 ns_text(t.p99_ns),        ns_text(t.p999_ns),
                                 ns_text(t.max_ns),        t.failure.empty() ? "yes" : "no: " + t.failure};
  if (names.has_cycle)
    cells.insert(cells.begin(), format_ns(cycle_ns(t.rate)));
  return cells;
}

void print(const output &out, const std::vector<std::string> &cells) {
  std::string line;
  for (std::size_t k = 0; k + 1 < cells.size(); ++k)
    line += fmt::format("{:>11}", cells[k]);
  out.text("{}  {}\n", line, cells.back());
}

json trial_json(const rate_trial &t, const search_names &names) {
  json made = {{"rate", t.rate},
               {"answered_per_second", t.answered},
               {names.played, t.played},
               {names.measured, t.measured},
               {"lost", t.lost},
               {"begun_late", t.late},
               {"p50_ns", t.p50_ns},
               {"p99_ns", t.p99_ns},
               {"p999_ns", t.p999_ns},
               {"max_ns", t.max_ns},
               {"holds", t.failure.empty()},
               {"failure", t.failure}};
  if (names.has_cycle)
    made["cycle_ns"] = cycle_ns(t.rate);
  return made;
}

/// The worst run at each rate, whether it held or not.
std::string search_plot(const std::vector<rate_trial> &trials) {
  std::map<double, rate_trial> worst;
  for (const rate_trial &t : trials) {
    rate_trial &w = worst.emplace(t.rate, t).first->second;
    w.p50_ns = std::max(w.p50_ns, t.p50_ns);
    w.p99_ns = std::max(w.p99_ns, t.p99_ns);
    w.p999_ns = std::max(w.p999_ns, t.p999_ns);
    w.max_ns = std::max(w.max_ns, t.max_ns);
  }
  std::vector<plotted_curve> curves;
  const auto add = [&](const char *name, std::uint64_t rate_trial::*ns) {
    plotted_curve curve{name, curves.size(), curves.size(), {}};
    for (const auto &[rate, t] : worst)
      if (const double us = static_cast<double>(t.*ns) / 1e3; us > 0)
        curve.points.push_back({rate, us, us, us});
    curves.push_back(std::move(curve));
  };
  add("p50", &rate_trial::p50_ns);
  add("p99", &rate_trial::p99_ns);
  add("p99.9", &rate_trial::p999_ns);
  add("max", &rate_trial::max_ns);
  return curve_plot(curves, "offered rate (1/s)", "latency (us)", &format_rate);
}

std::string search_html(const json &report, const std::vector<rate_trial> &trials, const search_names &names) {
  std::vector<std::vector<std::string>> rows{head_cells(names)};
  for (const rate_trial &t : trials)
    rows.push_back(cells_of(t, names));
  html_page page("Highest rate: " + report["link"].get<std::string>());
  page.add("Method", html_paragraph(report["method"].get<std::string>()));
  page.add("Latency over the offered rate", search_plot(trials));
  page.add("The runs, in their order", html_table(rows));
  return page.text(report);
}

std::string rate_text(double rate, const search_names &names) {
  const std::string text = format_rate(rate) + "/s";
  return names.has_cycle ? fmt::format("a round each {} ({})", format_ns(cycle_ns(rate)), text) : text;
}

std::string summary(const rate_search_result &found, const rate_search &how, double bound_us,
                    const search_names &names) {
  if (found.highest == 0)
    return "none found";
  std::string text = fmt::format("{} in {} of {} runs: nothing lost, late or wrong, p99.9 at most {:g} us",
                                 rate_text(found.highest, names), how.repeats, how.repeats, bound_us);
  if (found.failed != 0)
    text += fmt::format("; {} does not hold", rate_text(found.failed, names));
  else if (!found.ended)
    text += "; a higher one is not played";
  return text;
}

} // namespace

void set_latencies(rate_trial &trial, const latency_histogram &times) {
  trial.measured = times.count();
  trial.p50_ns = times.percentile(50);
  trial.p99_ns = times.percentile(99);
  trial.p999_ns = times.percentile(99.9);
  trial.max_ns = times.max();
}

std::string above_bound(const rate_trial &trial, std::uint64_t bound_ns) {
  return trial.p999_ns > bound_ns ? fmt::format("p99.9 {}", ns_text(trial.p999_ns)) : "";
}

int report_search(const rate_search &how, double bound_us, const search_names &names, json body,
                  const std::function<std::optional<rate_trial>(double rate, std::string &stalled)> &play,
                  const interrupt_guard &interrupts, const output &out) {
  std::string stalled;
  out.text("\n");
  print(out, head_cells(names));
  const rate_search_result found = search_rate(how, [&](double rate) {
    std::optional<rate_trial> trial = play(rate, stalled);
    if (trial)
      print(out, cells_of(*trial, names));
    return trial;
  });
  out.text("\nhighest rate  {}\n", summary(found, how, bound_us, names));
  const auto known = [](double value) { return value == 0 ? json() : json(value); };
  body["repeats"] = how.repeats;
  body["precision"] = how.precision;
  body["p999_bound_ns"] = static_cast<std::uint64_t>(bound_us * 1e3);
  body["highest_rate"] = known(found.highest);
  body["lowest_rate_that_fails"] = known(found.failed);
  if (names.has_cycle) {
    body["lowest_cycle_ns"] = known(cycle_ns(found.highest));
    body["highest_cycle_that_fails_ns"] = known(cycle_ns(found.failed));
  }
  body["trials"] = json::array();
  for (const rate_trial &t : found.trials)
    body["trials"].push_back(trial_json(t, names));
  std::string problem = stalled;
  if (problem.empty() && found.highest == 0 && !found.ended)
    problem = fmt::format("no rate holds; {}: {}", rate_text(found.failed, names), found.trials.back().failure);
  return out.finish(body, problem, kExitCheckFailed,
                    ended(interrupts.interrupted(), found.trials.size(), kNotKnown, "runs"),
                    [&](const json &all) { return search_html(all, found.trials, names); });
}

} // namespace cudaq::realtime::tools
