// SPDX-License-Identifier: Apache-2.0
#include "tools/top/top_sample.h"

#include "tools/common/terminal.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

std::uint64_t grown(std::uint64_t before, std::uint64_t after) { return after >= before ? after - before : after; }

sampled_decoder decoder_between(const counted_decoder &before, const counted_decoder &after) {
  sampled_decoder d;
  d.id = after.id;
  d.requests = grown(before.requests, after.requests);
  d.shots = grown(before.shots, after.shots);
  d.waiting = after.waiting;
  d.too_old = grown(before.too_old, after.too_old);
  d.failed_one_shots = grown(before.failed_one_shots, after.failed_one_shots);
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
  for (std::size_t i = 0; i < after.answers.size(); ++i) {
    const bool same = i < before.answers.size() && before.answers[i].first == after.answers[i].first;
    d.answers.emplace_back(after.answers[i].first, grown(same ? before.answers[i].second : 0, after.answers[i].second));
  }
  const bool same_buckets = before.latency.size() == after.latency.size() && !after.latency.empty() &&
                            before.latency.back().second <= after.latency.back().second;
  std::uint64_t seen = 0;
  for (std::size_t k = 0; k < after.latency.size(); ++k) {
    const std::uint64_t up_to = grown(same_buckets ? before.latency[k].second : 0, after.latency[k].second);
    if (up_to > seen)
      d.latency.emplace_back(after.latency[k].first, up_to - seen);
    seen = std::max(seen, up_to);
    if (std::isfinite(after.latency[k].first))
      d.latency_limit_ns = after.latency[k].first;
  }
  d.answered = seen;
  if (seen != 0)
    d.latency_mean_ns =
        std::max(0.0, after.latency_sum_ns - (same_buckets ? before.latency_sum_ns : 0)) / static_cast<double>(seen);
  return d;
}

std::string errors_of(const sampled_decoder &d) {
  std::string text;
  const auto add = [&](const std::string &name, std::uint64_t count) {
    if (count != 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
  };
  for (const auto &[status, count] : d.answers)
    if (status != "ok")
      add(status, count);
  add("too_old", d.too_old);
  add("failed_one_shots", d.failed_one_shots);
  return text.empty() ? "-" : coloured(text, colour::bad);
}

/// null: above all bounds.
json or_null(double ns) { return std::isfinite(ns) ? json(ns) : json(); }

} // namespace

double sampled_decoder::latency_percentile_ns(double percent) const {
  const double rank = std::max(1.0, std::ceil(percent / 100 * static_cast<double>(answered) * (1 - 1e-12)));
  double seen = 0;
  for (const auto &[bound, count] : latency) {
    seen += static_cast<double>(count);
    if (seen >= rank)
      return bound;
  }
  return 0;
}

server_sample sample_between(const server_counters &before, const server_counters &after, double seconds) {
  server_sample s;
  s.seconds = seconds;
  s.processed = grown(before.processed, after.processed);
  s.in_flight = after.in_flight;
  s.strays = grown(before.strays, after.strays);
  s.bad_magic = grown(before.bad_magic, after.bad_magic);
  s.reloads = grown(before.reloads, after.reloads);
  for (const counted_decoder &d : after.decoders) {
    const auto same = std::find_if(before.decoders.begin(), before.decoders.end(),
                                   [&](const counted_decoder &other) { return other.id == d.id; });
    s.decoders.push_back(decoder_between(same == before.decoders.end() ? counted_decoder{} : *same, d));
  }
  return s;
}

json sample_json(const server_sample &s) {
  json decoders = json::array();
  for (const sampled_decoder &d : s.decoders) {
    json answers = json::object();
    for (const auto &[status, count] : d.answers)
      answers[status] = count;
    json stream;
    if (d.is_stream)
      stream = {{"rounds_pushed", d.rounds_pushed},
                {"rounds_committed", d.rounds_committed},
                {"rounds_per_second", static_cast<double>(d.rounds_committed) / s.seconds},
                {"lag_rounds", d.lag_rounds},
                {"worst_lag_rounds", d.worst_lag_rounds},
                {"tail_ns_mean", d.shots == 0 ? json() : json(d.tail_mean_ns)},
                {"tail_ns_max", d.worst_tail_ns}};
    decoders.push_back({{"id", d.id},
                        {"requests", d.requests},
                        {"requests_per_second", static_cast<double>(d.requests) / s.seconds},
                        {"shots", d.shots},
                        {"shots_per_second", static_cast<double>(d.shots) / s.seconds},
                        {"waiting", d.waiting},
                        {"too_old", d.too_old},
                        {"failed_one_shots", d.failed_one_shots},
                        {"exchanges", d.exchanges},
                        {"answers_by_status", answers},
                        {"stream", stream},
                        {"latency_ns",
                         {{"count", d.answered},
                          {"mean", d.latency_mean_ns},
                          {"p50", or_null(d.latency_percentile_ns(50))},
                          {"p90", or_null(d.latency_percentile_ns(90))},
                          {"p99", or_null(d.latency_percentile_ns(99))},
                          {"p99.9", or_null(d.latency_percentile_ns(99.9))},
                          {"percentile_relative_error", 0.25}}}});
  }
  return {{"seconds", s.seconds},
          {"processed", s.processed},
          {"processed_per_second", static_cast<double>(s.processed) / s.seconds},
          {"in_flight", s.in_flight},
          {"stray_requests", s.strays},
          {"dropped_bad_magic", s.bad_magic},
          {"reloads", s.reloads},
          {"decoders", decoders}};
}

std::string sample_text(const server_sample &s) {
  std::string text = fmt::format("{:.1f} s: {} requests/s, {} in flight, {} stray, {} of a wrong magic, {} reloads\n",
                                 s.seconds, format_rate(static_cast<double>(s.processed) / s.seconds), s.in_flight,
                                 s.strays, s.bad_magic, s.reloads);
  text += fmt::format("{:>10} {:>11} {:>10} {:>8} {:>9} {:>9} {:>9}  {}\n", "decoder", "requests/s", "shots/s",
                      "waiting", "p50", "p99", "p99.9", "errors");
  for (const sampled_decoder &d : s.decoders) {
    const auto latency = [&](double percent) {
      const double ns = d.latency_percentile_ns(percent);
      return d.answered == 0     ? std::string("-")
             : std::isfinite(ns) ? format_ns(ns)
                                 : ">" + format_ns(d.latency_limit_ns);
    };
    text += fmt::format("{:>10} {:>11} {:>10} {:>8} {:>9} {:>9} {:>9}  {}\n", d.id,
                        format_rate(static_cast<double>(d.requests) / s.seconds),
                        format_rate(static_cast<double>(d.shots) / s.seconds), d.waiting, latency(50), latency(99),
                        latency(99.9), errors_of(d));
  }
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
