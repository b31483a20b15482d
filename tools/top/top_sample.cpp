// SPDX-License-Identifier: Apache-2.0
#include "tools/top/top_sample.h"

#include "tools/common/terminal.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

std::uint64_t grown(std::uint64_t before, std::uint64_t after) { return after >= before ? after - before : after; }

using named_counts = std::vector<std::pair<std::string, std::uint64_t>>;

named_counts grown_by_name(const named_counts &before, const named_counts &after) {
  named_counts grown_ones;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const bool same = i < before.size() && before[i].first == after[i].first;
    grown_ones.emplace_back(after[i].first, grown(same ? before[i].second : 0, after[i].second));
  }
  return grown_ones;
}

json json_of(const named_counts &counts) {
  json all = json::object();
  for (const auto &[name, count] : counts)
    all[name] = count;
  return all;
}

bool is_busy(const std::string &status) { return status == "busy"; }
/// BUSY is no error: the request had no effect, and is sent again.
bool is_error(const std::string &status) { return status != "ok" && !is_busy(status); }

std::uint64_t count_of(const named_counts &answers, bool (*is_meant)(const std::string &)) {
  std::uint64_t sum = 0;
  for (const auto &[status, count] : answers)
    sum += is_meant(status) ? count : 0;
  return sum;
}

sampled_node node_between(const counted_node &before, const counted_node &after) {
  counted_node n{after.name, after.joined};
  n.forwarded = grown(before.forwarded, after.forwarded);
  n.answered = grown(before.answered, after.answered);
  n.lost = grown(before.lost, after.lost);
  n.refused = grown(before.refused, after.refused);
  n.late = grown(before.late, after.late);
  n.joins = grown(before.joins, after.joins);
  n.losses = grown(before.losses, after.losses);
  return {n, after};
}

json node_json(const sampled_node &node, double seconds) {
  const counted_node &n = node.interval;
  return {{"name", n.name},
          {"joined", n.joined},
          {"forwarded", n.forwarded},
          {"forwarded_per_second", static_cast<double>(n.forwarded) / seconds},
          {"answered", n.answered},
          {"lost", n.lost},
          {"refused", n.refused},
          {"late", n.late},
          {"joins", n.joins},
          {"losses", n.losses},
          {"total",
           {{"forwarded", node.total.forwarded},
            {"answered", node.total.answered},
            {"lost", node.total.lost},
            {"refused", node.total.refused}}}};
}

bool have_grown(const counted_buckets &before, const counted_buckets &after) {
  return before.size() == after.size() && !after.empty() && before.back().second <= after.back().second;
}

sampled_times times_between(const counted_buckets &before, const counted_buckets &after) {
  sampled_times times;
  const bool grew = have_grown(before, after);
  for (std::size_t k = 0; k < after.size(); ++k) {
    const std::uint64_t up_to = grown(grew ? before[k].second : 0, after[k].second);
    if (up_to > times.count)
      times.buckets.emplace_back(after[k].first, up_to - times.count);
    times.count = std::max(times.count, up_to);
  }
  return times;
}

std::vector<sampled_stage> stages_between(const counted_decoder &before, const counted_decoder &after) {
  std::vector<sampled_stage> stages;
  for (const counted_stage &stage : after.stages) {
    const auto same = std::ranges::find(before.stages, stage.name, &counted_stage::name);
    const counted_buckets none;
    stages.push_back({stage.name,
                      stage.buckets.empty()
                          ? times_between(before.latency, after.latency)
                          : times_between(same == before.stages.end() ? none : same->buckets, stage.buckets),
                      stage.worst_ns});
  }
  return stages;
}

sampled_decoder decoder_between(const counted_decoder &before, const counted_decoder &after) {
  sampled_decoder d;
  d.id = after.id;
  d.requests = grown(before.requests, after.requests);
  d.shots = grown(before.shots, after.shots);
  d.waiting = after.waiting;
  d.too_old = grown(before.too_old, after.too_old);
  d.padded = grown(before.padded, after.padded);
  d.deadline_met = grown(before.deadline_met, after.deadline_met);
  d.deadline_missed = grown(before.deadline_missed, after.deadline_missed);
  d.deadline_late = grown(before.deadline_late, after.deadline_late);
  d.total = after;
  d.exchanges = grown(before.exchanges, after.exchanges);
  d.is_stream = after.is_stream;
  d.rounds_pushed = grown(before.rounds_pushed, after.rounds_pushed);
  d.rounds_committed = grown(before.rounds_committed, after.rounds_committed);
  d.lag_rounds = after.lag_rounds;
  d.worst_lag_rounds = after.worst_lag_rounds;
  d.worst_tail_ns = after.worst_tail_ns;
  if (after.is_stream && d.shots != 0)
    d.tail_mean_ns =
        (after.tail_sum_ns - (after.shots >= before.shots ? before.tail_sum_ns : 0)) / static_cast<double>(d.shots);
  d.answers = grown_by_name(before.answers, after.answers);
  d.wins = grown_by_name(before.wins, after.wins);
  d.latency = times_between(before.latency, after.latency);
  d.stages = stages_between(before, after);
  for (const auto &[bound, count] : after.latency)
    if (std::isfinite(bound))
      d.latency_limit_ns = bound;
  if (d.latency.count != 0)
    d.latency_mean_ns =
        std::max(0.0, after.latency_sum_ns - (have_grown(before.latency, after.latency) ? before.latency_sum_ns : 0)) /
        static_cast<double>(d.latency.count);
  return d;
}

std::string errors_of(const sampled_decoder &d) {
  std::string text;
  const auto add = [&](const std::string &name, std::uint64_t count) {
    if (count != 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
  };
  for (const auto &[status, count] : d.answers)
    if (is_error(status))
      add(status, count);
  add("too_old", d.too_old);
  return text.empty() ? "-" : coloured(text, colour::bad);
}

/// Null: nothing was measured, or the request is above all bounds.
json percentile_json(const sampled_times &times, double percent) {
  const double ns = times.percentile_ns(percent);
  return times.count != 0 && std::isfinite(ns) ? json(ns) : json();
}

json stages_json(const sampled_decoder &d) {
  json stages = d.stages.empty() ? json() : json::object();
  for (const sampled_stage &stage : d.stages)
    stages[stage.name] = {{"count", stage.times.count},
                          {"p50", percentile_json(stage.times, 50)},
                          {"p99", percentile_json(stage.times, 99)},
                          {"p99.9", percentile_json(stage.times, 99.9)},
                          {"worst_since_start", stage.worst_ns}};
  return stages;
}

/// The clock may have been set since the start.
double uptime_of(const server_sample &s, double now) { return std::max(0.0, now - s.start_time); }

/// Version and time since the start, if the server says them: "; version 1.2.0, up 3 d 04:05:06".
std::string server_text(const server_sample &s, double now) {
  std::string text;
  if (!s.version.empty())
    text = "; version " + s.version;
  if (s.start_time == 0)
    return text;
  const auto up = static_cast<std::uint64_t>(uptime_of(s, now));
  const std::uint64_t days = up / 86'400;
  return text + fmt::format("{} up {}{:02}:{:02}:{:02}", text.empty() ? ";" : ",",
                            days == 0 ? "" : fmt::format("{} d ", days), up / 3600 % 24, up / 60 % 60, up % 60);
}

/// At the end of the interval. Null: the decoder does not count detection events.
json detectors_json(const counted_decoder &now) {
  if (now.detectors == 0)
    return {};
  json worst = json::array();
  for (const counted_detector &d : now.worst_detectors)
    worst.push_back({{"detector", d.detector}, {"sigma", d.sigma}, {"rate", d.rate}, {"model_rate", d.model_rate}});
  return {{"detectors", now.detectors},
          {"shots", now.detector_shots},
          {"beyond_5_sigma", now.detectors_beyond},
          {"worst", worst}};
}

} // namespace

double sampled_times::percentile_ns(double percent) const {
  const double rank = std::max(1.0, std::ceil(percent / 100 * static_cast<double>(count) * (1 - 1e-12)));
  double seen = 0;
  for (const auto &[bound, requests] : buckets) {
    seen += static_cast<double>(requests);
    if (seen >= rank)
      return bound;
  }
  return 0;
}

server_sample sample_between(const server_counters &before, const server_counters &after, double seconds) {
  server_sample s;
  s.seconds = seconds;
  s.version = after.version;
  s.start_time = after.start_time;
  s.processed = grown(before.processed, after.processed);
  s.in_flight = after.in_flight;
  s.strays = grown(before.strays, after.strays);
  s.bad_magic = grown(before.bad_magic, after.bad_magic);
  s.reloads = grown(before.reloads, after.reloads);
  s.others = grown_by_name(before.others, after.others);
  s.total_others = after.others;
  s.total_processed = after.processed;
  s.is_router = after.is_router;
  for (const counted_node &node : after.nodes) {
    const auto same = std::ranges::find(before.nodes, node.name, &counted_node::name);
    s.nodes.push_back(node_between(same == before.nodes.end() ? counted_node{} : *same, node));
  }
  for (const counted_decoder &d : after.decoders) {
    const auto same = std::find_if(before.decoders.begin(), before.decoders.end(),
                                   [&](const counted_decoder &other) { return other.id == d.id; });
    s.decoders.push_back(decoder_between(same == before.decoders.end() ? counted_decoder{} : *same, d));
  }
  return s;
}

json sample_json(const server_sample &s, double now) {
  json decoders = json::array();
  for (const sampled_decoder &d : s.decoders) {
    json stream;
    if (d.is_stream)
      stream = {{"rounds_pushed", d.rounds_pushed},
                {"rounds_committed", d.rounds_committed},
                {"rounds_per_second", static_cast<double>(d.rounds_committed) / s.seconds},
                {"lag_rounds", d.lag_rounds},
                {"worst_lag_rounds", d.worst_lag_rounds},
                {"tail_ns_mean", d.shots == 0 ? json() : json(d.tail_mean_ns)},
                {"tail_ns_max", d.worst_tail_ns == 0 ? json() : json(d.worst_tail_ns)}};
    decoders.push_back({{"id", d.id},
                        {"requests", d.requests},
                        {"requests_per_second", static_cast<double>(d.requests) / s.seconds},
                        {"shots", d.shots},
                        {"shots_per_second", static_cast<double>(d.shots) / s.seconds},
                        {"waiting", d.waiting},
                        {"too_old", d.too_old},
                        {"padded", d.padded},
                        {"exchanges", d.exchanges},
                        {"deadline_met", d.deadline_met},
                        {"deadline_missed", d.deadline_missed},
                        {"deadline_late", d.deadline_late},
                        {"race_wins", d.wins.empty() ? json() : json_of(d.wins)},
                        {"answers_by_status", json_of(d.answers)},
                        {"total",
                         {{"requests", d.total.requests},
                          {"shots", d.total.shots},
                          {"too_old", d.total.too_old},
                          {"padded", d.total.padded},
                          {"deadline_met", d.total.deadline_met},
                          {"deadline_missed", d.total.deadline_missed},
                          {"deadline_late", d.total.deadline_late},
                          {"race_wins", d.total.wins.empty() ? json() : json_of(d.total.wins)},
                          {"answers_by_status", json_of(d.total.answers)}}},
                        {"stream", stream},
                        {"latency_ns",
                         {{"count", d.latency.count},
                          {"mean", d.latency.count == 0 ? json() : json(d.latency_mean_ns)},
                          {"p50", percentile_json(d.latency, 50)},
                          {"p90", percentile_json(d.latency, 90)},
                          {"p99", percentile_json(d.latency, 99)},
                          {"p99.9", percentile_json(d.latency, 99.9)},
                          {"percentile_relative_error", 0.25}}},
                        {"stages_ns", stages_json(d)},
                        {"detectors", detectors_json(d.total)}});
  }
  json nodes; // null: it is not a router
  if (s.is_router)
    nodes = json::array();
  for (const sampled_node &node : s.nodes)
    nodes.push_back(node_json(node, s.seconds));
  json counters = json::object();
  for (std::size_t k = 0; k < s.others.size(); ++k)
    counters[s.others[k].first] = {{"interval", s.others[k].second}, {"total", s.total_others[k].second}};
  return {{"seconds", s.seconds},
          {"version", s.version.empty() ? json() : json(s.version)},
          {"uptime_seconds", s.start_time == 0 ? json() : json(uptime_of(s, now))},
          {"counters", counters},
          {"total_processed", s.total_processed},
          {"nodes", nodes},
          {"processed", s.processed},
          {"processed_per_second", static_cast<double>(s.processed) / s.seconds},
          {"in_flight", s.in_flight},
          {"stray_requests", s.strays},
          {"dropped_bad_magic", s.bad_magic},
          {"reloads", s.reloads},
          {"decoders", decoders}};
}

namespace {

/// Each reason why a request was not served is here, whatever the transport counts.
std::string others_text(const server_sample &s) {
  std::string text;
  for (std::size_t k = 0; k < s.others.size(); ++k)
    if (const auto &[name, total] = s.total_others[k]; total != 0)
      text += fmt::format("{:>36} {:>12} {:>16}\n", name, s.others[k].second, total);
  return text.empty() ? text : fmt::format("{:>36} {:>12} {:>16}\n", "counter", "now", "since the start") + text;
}

std::string router_text(const server_sample &s) {
  std::string text =
      fmt::format("router, {:.1f} s: {} requests/s, {} stray; since the start: {} requests\n", s.seconds,
                  format_rate(static_cast<double>(s.processed) / s.seconds), s.strays, s.total_processed);
  text += fmt::format("{:>16} {:>8} {:>11} {:>11} {:>8} {:>8} {:>8} {:>8} {:>12} {:>12}\n", "node", "state", "sent/s",
                      "answers/s", "lost", "refused", "late", "losses", "sent, all", "lost, all");
  for (const sampled_node &node : s.nodes) {
    const counted_node &n = node.interval;
    const std::string lost = std::to_string(n.lost);
    text += fmt::format("{:>16} {:>8} {:>11} {:>11} {:>8} {:>8} {:>8} {:>8} {:>12} {:>12}\n", n.name,
                        n.joined ? "joined" : "away", format_rate(static_cast<double>(n.forwarded) / s.seconds),
                        format_rate(static_cast<double>(n.answered) / s.seconds), lost, n.refused, n.late, n.losses,
                        node.total.forwarded, node.total.lost);
  }
  return text + others_text(s) + "Decoders are shown by `top` on the counters of each node.\n";
}

std::string percentile_text(const sampled_decoder &d, const sampled_times &times, double percent) {
  const double ns = times.percentile_ns(percent);
  return times.count == 0 ? "-" : std::isfinite(ns) ? format_ns(ns) : ">" + format_ns(d.latency_limit_ns);
}

/// Of decoders that have answered something in the interval.
std::string stages_text(const server_sample &s) {
  std::string text;
  for (const sampled_decoder &d : s.decoders)
    for (const sampled_stage &stage : d.stages)
      if (stage.times.count != 0)
        text += fmt::format("{:>10} {:>11} {:>9} {:>9} {:>9} {:>12}\n", d.id, stage.name,
                            percentile_text(d, stage.times, 50), percentile_text(d, stage.times, 99),
                            percentile_text(d, stage.times, 99.9), format_ns(stage.worst_ns));
  return text.empty() ? text
                      : fmt::format("{:>10} {:>11} {:>9} {:>9} {:>9} {:>12}\n", "times", "stage", "p50", "p99", "p99.9",
                                    "worst, all") +
                            text;
}

std::string totals_text(const server_sample &s) {
  std::uint64_t requests = 0, shots = 0, errors = 0, busy = 0, too_old = 0, padded = 0;
  for (const sampled_decoder &d : s.decoders) {
    requests += d.total.requests;
    shots += d.total.shots;
    errors += count_of(d.total.answers, &is_error);
    busy += count_of(d.total.answers, &is_busy);
    too_old += d.total.too_old;
    padded += d.total.padded;
  }
  return fmt::format("since the start: {} requests, {} shots, {} answers with an error, {} BUSY, {} too old{}\n",
                     requests, shots, errors, busy, too_old, padded == 0 ? "" : fmt::format(", {} padded", padded));
}

std::string deadlines_text(const server_sample &s) {
  std::string text;
  for (const sampled_decoder &d : s.decoders)
    if (const counted_decoder &all = d.total; all.deadline_met + all.deadline_missed != 0)
      text += fmt::format("{:>10} {:>11} {:>11} {:>10} {:>12} {:>12} {:>10}\n", d.id, d.deadline_met, d.deadline_missed,
                          d.deadline_late, all.deadline_met, all.deadline_missed, all.deadline_late);
  if (text.empty())
    return text;
  return fmt::format("{:>10} {:>11} {:>11} {:>10} {:>12} {:>12} {:>10}\n", "deadline", "met", "missed", "late",
                     "met, all", "missed, all", "late, all") +
         text;
}

/// The worst detectors of the decoders that have certain differences.
std::string detectors_text(const server_sample &s) {
  std::string text;
  for (const sampled_decoder &d : s.decoders) {
    const counted_decoder &now = d.total;
    if (now.detectors_beyond == 0)
      continue;
    text += fmt::format("{:>10} {}\n", d.id,
                        coloured(fmt::format("{} of {} detectors beyond 5 sigma, in about {} shots",
                                             now.detectors_beyond, now.detectors, now.detector_shots),
                                 colour::bad));
    for (const counted_detector &worst : now.worst_detectors)
      text += fmt::format("{:>10} {:>11} {:>11.4g} {:>11.4g} {:>9.1f}\n", d.id, fmt::format("D{}", worst.detector),
                          worst.rate, worst.model_rate, worst.sigma);
  }
  if (text.empty())
    return text;
  return fmt::format("{:>10} {:>11} {:>11} {:>11} {:>9}\n", "detectors", "worst", "rate", "model", "sigma") + text;
}

std::string races_text(const server_sample &s) {
  std::string text;
  for (const sampled_decoder &d : s.decoders)
    for (std::size_t k = 0; k < d.wins.size(); ++k)
      text +=
          fmt::format("{:>10} {:>11} {:>18}  {}\n", d.id, d.wins[k].second, d.total.wins[k].second, d.wins[k].first);
  // Each exchange of the decoder makes new counts.
  return text.empty() ? text
                      : fmt::format("{:>10} {:>11} {:>18}  {}\n", "race", "won", "since exchange", "member") + text;
}

} // namespace

std::string sample_text(const server_sample &s, double now) {
  if (s.is_router)
    return router_text(s);
  std::string text = fmt::format("{:.1f} s: {} requests/s, {} in flight, {} stray, {} reloads{}\n", s.seconds,
                                 format_rate(static_cast<double>(s.processed) / s.seconds), s.in_flight, s.strays,
                                 s.reloads, server_text(s, now));
  text += fmt::format("{:>10} {:>11} {:>10} {:>8} {:>9} {:>9} {:>9} {:>8}  {}\n", "decoder", "requests/s", "shots/s",
                      "waiting", "p50", "p99", "p99.9", "busy", "errors");
  for (const sampled_decoder &d : s.decoders) {
    const auto latency = [&](double percent) { return percentile_text(d, d.latency, percent); };
    text += fmt::format("{:>10} {:>11} {:>10} {:>8} {:>9} {:>9} {:>9} {:>8}  {}\n", d.id,
                        format_rate(static_cast<double>(d.requests) / s.seconds),
                        format_rate(static_cast<double>(d.shots) / s.seconds), d.waiting, latency(50), latency(99),
                        latency(99.9), count_of(d.answers, &is_busy), errors_of(d));
  }
  text += stages_text(s) + totals_text(s) + deadlines_text(s) + races_text(s) + detectors_text(s) + others_text(s);
  if (std::ranges::none_of(s.decoders, &sampled_decoder::is_stream))
    return text;
  text += fmt::format("{:>10} {:>11} {:>11} {:>10} {:>10} {:>9} {:>9} {:>9}\n", "stream", "rounds/s", "final/s", "lag",
                      "worst lag", "ended", "tail", "worst");
  for (const sampled_decoder &d : s.decoders)
    if (d.is_stream)
      text += fmt::format("{:>10} {:>11} {:>11} {:>10} {:>10} {:>9} {:>9} {:>9}\n", d.id,
                          format_rate(static_cast<double>(d.rounds_pushed) / s.seconds),
                          format_rate(static_cast<double>(d.rounds_committed) / s.seconds), d.lag_rounds,
                          d.worst_lag_rounds, d.shots, d.shots == 0 ? "-" : format_ns(d.tail_mean_ns),
                          d.worst_tail_ns == 0 ? "-" : format_ns(d.worst_tail_ns));
  return text;
}

} // namespace cudaq::realtime::tools
