// SPDX-License-Identifier: Apache-2.0
#include "tools/emulate/search/search_run.h"

#include "tools/common/clock.h"
#include "tools/emulate/play_loop.h"
#include "tools/emulate/player.h"
#include "tools/emulate/search/search_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

/// Of a stream: all runs have the same rounds, so each halving of the rate doubles their time.
constexpr double kLongestRun_s = 60;

std::uint64_t bound_ns(const emulate_options &o) { return static_cast<std::uint64_t>(o.search_p999_us * 1e3); }

double per_second(std::uint64_t count, std::uint64_t ns) {
  return ns == 0 ? 0 : static_cast<double>(count) * 1e9 / static_cast<double>(ns);
}

void add_text(std::vector<std::string> &why, std::string text) {
  if (!text.empty())
    why.push_back(std::move(text));
}

std::string failure_of(const play_result &r, const rate_trial &trial, std::uint64_t bound) {
  std::vector<std::string> why = problems_of(r, false, 0);
  if (r.undecided.at_deadline != 0) // of a slower sender they may be fewer
    why.push_back(fmt::format("{} shots that reached the deadline of their decoder", r.undecided.at_deadline));
  if (r.late != 0)
    why.push_back(fmt::format("{} shots late", r.late));
  add_text(why, above_bound(trial, bound));
  if (r.answered == 0 && why.empty())
    why.emplace_back("no shot was answered");
  return fmt::format("{}", fmt::join(why, "; "));
}

rate_trial trial_of(double rate, const play_result &r, std::uint64_t bound) {
  rate_trial t;
  t.rate = rate;
  t.answered = per_second(r.answered, r.wall_ns);
  t.played = r.shots;
  t.lost = r.lost;
  t.late = r.late;
  set_latencies(t, r.shot_time);
  t.failure = failure_of(r, t, bound);
  return t;
}

rate_trial trial_of(double rate, const stream_play_result &r, const stream_plan &plan, std::uint64_t bound) {
  rate_trial t;
  t.rate = rate;
  t.answered = per_second(r.rounds, r.wall_ns);
  t.played = r.rounds;
  t.lost = r.lost;
  t.late = r.pace.worst_lag();
  set_latencies(t, r.window_time);
  t.failure = failure_of(r, plan, 1e9 / rate, bound);
  return t;
}

/// One run; nothing if it was ended before its end.
template <class Player, class Count>
auto result_of_run(Player &run, const progress_plan &plan, const Count &count, const interrupt_guard &interrupts,
                   double rate, std::string &stalled) -> std::optional<decltype(run.result())> {
  progress display(plan);
  play_to_end(run, interrupts, display, count);
  auto result = run.result();
  if (result.stalled)
    stalled = fmt::format("no progress at {}/s: {}", format_rate(rate), fmt::join(result.notes, "; "));
  if (interrupts.interrupted() || result.stalled)
    return std::nullopt;
  return result;
}

} // namespace

std::string failure_of(const stream_play_result &r, const stream_plan &plan, double cycle_ns, std::uint64_t bound) {
  std::vector<std::string> why = problems_of(r, false, 1);
  if (r.undecided.total() != 0) // the stream ended there
    why.push_back(fmt::format("a window without an answer after {} of {} rounds", r.rounds, plan.rounds()));
  else if (!r.pace.kept_within(static_cast<double>(bound)))
    why.push_back("pace " + r.pace.text());
  rate_trial trial;
  set_latencies(trial, r.window_time);
  add_text(why, above_bound(trial, bound));
  // The least of a tenth, which no single pause of either machine changes.
  const auto window_ns = static_cast<std::uint64_t>(static_cast<double>(plan.commit() + plan.buffer()) * cycle_ns);
  if (r.first_tenth_ns != 0 && r.last_tenth_ns > r.first_tenth_ns + window_ns) // 0: no window ended there
    why.push_back(fmt::format("the lag grows: at least {} in the last tenth, {} in the first one",
                              format_ns(static_cast<double>(r.last_tenth_ns)),
                              format_ns(static_cast<double>(r.first_tenth_ns))));
  return fmt::format("{}", fmt::join(why, "; "));
}

int run_rate_search(const emulate_options &options, const shot_plan &plan, bool check, link &to, std::uint32_t first_id,
                    const interrupt_guard &interrupts, const output &out) {
  rate_search how;
  how.first = options.rate == 0 ? how.first : options.rate;
  how.repeats = options.search_repeats;
  emulate_options o = options;
  o.duration_s = o.duration_s == 0 ? 1 : o.duration_s;
  std::uint32_t next_id = first_id;
  const auto play = [&](double rate, std::string &stalled) -> std::optional<rate_trial> {
    o.rate = rate;
    player run(o, plan, check, to, &now_ns);
    run.begin_with(next_id);
    const auto r = result_of_run(
        run, {"emulate", "shots", 0, static_cast<std::uint64_t>(o.duration_s * 1e9)}, [&run] { return run.answered(); },
        interrupts, rate, stalled);
    if (!r)
      return std::nullopt;
    next_id += static_cast<std::uint32_t>(r->requests);
    return trial_of(rate, *r, bound_ns(o));
  };
  const json body = {
      {"schema_version", kEmulateSchemaVersion},
      {"method", "runs at evenly spaced rates; shots are sent by the clock, never by the answers; times are those of "
                 "whole shots, from the scheduled time to the last answer (CLOCK_MONOTONIC); a rate holds if each of "
                 "its runs has nothing lost, late (begun later after its time than the bound, or than one interval if "
                 "that is longer) or wrong, and p99.9 below the bound; doubled until one fails, then bisected"},
      {"link", to.describe()},
      {"protocol", o.protocol},
      {"streams", player::streams(o)},
      {"data", plan.shots().name},
      {"corrections_are_checked", check},
      {"run_s", o.duration_s}};
  return report_search(how, o.search_p999_us, {"shots", "shots", false}, body, play, interrupts, out);
}

int run_stream_search(const emulate_options &options, stream_plan &plan, link &to, std::size_t slot_bytes,
                      std::uint32_t first_id, const interrupt_guard &interrupts, const output &out) {
  rate_search how;
  how.first = options.cycle_us == 0 ? 1e6 : 1e6 / options.cycle_us;
  how.highest = 1e9;
  how.lowest = std::min(how.first, std::max(how.lowest, static_cast<double>(plan.rounds()) / kLongestRun_s));
  how.repeats = options.search_repeats;
  emulate_options o = options;
  std::uint32_t next_id = first_id;
  const auto play = [&](double rate, std::string &stalled) -> std::optional<rate_trial> {
    o.cycle_us = 1e6 / rate;
    stream_player run(o, plan, to, slot_bytes, &now_ns);
    run.begin_with(next_id);
    const auto r = result_of_run(
        run, {"emulate", "rounds", plan.rounds(), 0}, [&run] { return run.progress(); }, interrupts, rate, stalled);
    if (!r)
      return std::nullopt;
    next_id += static_cast<std::uint32_t>(r->requests);
    return trial_of(rate, *r, plan, bound_ns(o));
  };
  const json body = {
      {"schema_version", kEmulateSchemaVersion},
      {"method",
       "runs of one experiment, the same in each; rounds are due by the clock, never by the answers; times are "
       "those of windows, from the time when the last round of the window was due to the answer that has its "
       "corrections (CLOCK_MONOTONIC); a rate holds if each of its runs has nothing lost or wrong, keeps its "
       "pace (at worst as late as the bound), its lag does not grow from the first to the last tenth, and p99.9 is "
       "below the bound; doubled "
       "until one fails, then bisected"},
      {"link", to.describe()},
      {"protocol", "stream"},
      {"windows", plan.description()},
      {"commit", plan.commit()},
      {"buffer", plan.buffer()},
      {"rounds_per_experiment", plan.rounds()}};
  return report_search(how, o.search_p999_us, {"rounds", "windows", true}, body, play, interrupts, out);
}

} // namespace cudaq::realtime::tools
