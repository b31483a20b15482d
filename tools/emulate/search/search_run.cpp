// SPDX-License-Identifier: Apache-2.0
#include "tools/emulate/search/search_run.h"

#include "tools/common/clock.h"
#include "tools/emulate/play_loop.h"
#include "tools/emulate/player.h"
#include "tools/emulate/search/rate_search.h"
#include "tools/html/html_page.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

std::string ns_text(std::uint64_t ns) { return format_ns(static_cast<double>(ns)); }

std::string failure_of(const play_result &r, std::uint64_t bound_ns) {
  std::vector<std::string> why = problems_of(r, false, 0);
  if (r.undecided.at_deadline != 0) // of a slower sender they may be fewer
    why.push_back(fmt::format("{} shots that reached the deadline of their decoder", r.undecided.at_deadline));
  if (r.late != 0)
    why.push_back(fmt::format("{} shots late", r.late));
  const std::uint64_t p999 = r.shot_time.percentile(99.9);
  if (p999 > bound_ns)
    why.push_back(fmt::format("p99.9 {}", ns_text(p999)));
  if (r.answered == 0 && why.empty())
    why.emplace_back("no shot was answered");
  return fmt::format("{}", fmt::join(why, "; "));
}

rate_trial trial_of(double rate, const play_result &r, std::uint64_t bound_ns) {
  rate_trial t;
  t.rate = rate;
  t.answered = r.wall_ns == 0 ? 0 : static_cast<double>(r.answered) * 1e9 / static_cast<double>(r.wall_ns);
  t.shots = r.shots;
  t.lost = r.lost;
  t.late = r.late;
  t.p50_ns = r.shot_time.percentile(50);
  t.p99_ns = r.shot_time.percentile(99);
  t.p999_ns = r.shot_time.percentile(99.9);
  t.max_ns = r.shot_time.max();
  t.failure = failure_of(r, bound_ns);
  return t;
}

void print_head(const output &out) {
  out.text("\n{:>10} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9}  {}\n", "offered/s", "answered/s", "shots", "p50", "p99",
           "p99.9", "max", "holds");
}

void print(const output &out, const rate_trial &t) {
  out.text("{:>10} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9}  {}\n", format_rate(t.rate), format_rate(t.answered), t.shots,
           ns_text(t.p50_ns), ns_text(t.p99_ns), ns_text(t.p999_ns), ns_text(t.max_ns),
           t.failure.empty() ? "yes" : "no: " + t.failure);
}

json trial_json(const rate_trial &t) {
  return {{"rate", t.rate},       {"answered_per_second", t.answered},
          {"shots", t.shots},     {"lost", t.lost},
          {"begun_late", t.late}, {"p50_ns", t.p50_ns},
          {"p99_ns", t.p99_ns},   {"p999_ns", t.p999_ns},
          {"max_ns", t.max_ns},   {"holds", t.failure.empty()},
          {"failure", t.failure}};
}

std::string search_html(const json &report, const std::vector<rate_trial> &trials) {
  std::vector<std::vector<std::string>> rows{
      {"holds", "offered/s", "answered/s", "shots", "p50", "p99", "p99.9", "max"}};
  for (const rate_trial &t : trials)
    rows.push_back({t.failure.empty() ? "yes" : "no: " + t.failure, format_rate(t.rate), format_rate(t.answered),
                    std::to_string(t.shots), ns_text(t.p50_ns), ns_text(t.p99_ns), ns_text(t.p999_ns),
                    ns_text(t.max_ns)});
  html_page page("Highest rate: " + report["link"].get<std::string>());
  page.add("Method", html_paragraph(report["method"].get<std::string>()));
  page.add("Latency over the offered rate, in the order of the runs", html_table(rows));
  return page.text(report);
}

std::string summary(const rate_search_result &found, const rate_search &how, double bound_us) {
  if (found.highest == 0)
    return "none found";
  std::string text = fmt::format("{}/s in {} of {} runs: nothing lost, late or wrong, p99.9 at most {:g} us",
                                 format_rate(found.highest), how.repeats, how.repeats, bound_us);
  if (found.failed != 0)
    text += fmt::format("; {}/s does not hold", format_rate(found.failed));
  else if (!found.ended)
    text += "; a higher one is not played";
  return text;
}

} // namespace

int run_rate_search(const emulate_options &options, const shot_plan &plan, bool check, link &to, std::uint32_t first_id,
                    const interrupt_guard &interrupts, const output &out) {
  const auto bound_ns = static_cast<std::uint64_t>(options.search_p999_us * 1e3);
  rate_search how;
  how.first = options.rate == 0 ? how.first : options.rate;
  how.repeats = options.search_repeats;
  emulate_options o = options;
  o.duration_s = o.duration_s == 0 ? 1 : o.duration_s;
  std::uint32_t next_id = first_id;
  std::string stalled;
  const auto play = [&](double rate) -> std::optional<rate_trial> {
    o.rate = rate;
    player run(o, plan, check, to, &now_ns);
    run.begin_with(next_id);
    progress display({"emulate", "shots", 0, static_cast<std::uint64_t>(o.duration_s * 1e9)});
    play_to_end(run, interrupts, display, [&run] { return run.answered(); });
    const play_result r = run.result();
    next_id += static_cast<std::uint32_t>(r.requests);
    if (r.stalled)
      stalled = fmt::format("no progress at {}/s: {}", format_rate(rate), fmt::join(r.notes, "; "));
    if (interrupts.interrupted() || r.stalled)
      return std::nullopt;
    const rate_trial trial = trial_of(rate, r, bound_ns);
    print(out, trial);
    return trial;
  };
  print_head(out);
  const rate_search_result found = search_rate(how, play);
  out.text("\nhighest rate  {}\n", summary(found, how, options.search_p999_us));
  json trials = json::array();
  for (const rate_trial &t : found.trials)
    trials.push_back(trial_json(t));
  const json body = {
      {"schema_version", kEmulateSchemaVersion},
      {"method", "runs at evenly spaced rates; shots are sent by the clock, never by the answers; times are those of "
                 "whole shots, from the scheduled time to the last answer (CLOCK_MONOTONIC); a rate holds if each of "
                 "its runs has nothing lost, late (begun more than one interval after its time) or wrong, and p99.9 "
                 "below the bound; doubled until one fails, then bisected"},
      {"link", to.describe()},
      {"protocol", o.protocol},
      {"streams", player::streams(o)},
      {"data", plan.shots().name},
      {"corrections_are_checked", check},
      {"run_s", o.duration_s},
      {"repeats", how.repeats},
      {"precision", how.precision},
      {"p999_bound_ns", bound_ns},
      {"highest_rate", found.highest == 0 ? json() : json(found.highest)},
      {"lowest_rate_that_fails", found.failed == 0 ? json() : json(found.failed)},
      {"trials", trials}};
  std::string problem = stalled;
  if (problem.empty() && found.highest == 0 && !found.ended)
    problem = fmt::format("no rate holds; {}/s: {}", format_rate(found.failed), found.trials.back().failure);
  return out.finish(body, problem, kExitCheckFailed,
                    ended(interrupts.interrupted(), found.trials.size(), kNotKnown, "runs"),
                    [&](const json &all) { return search_html(all, found.trials); });
}

} // namespace cudaq::realtime::tools
