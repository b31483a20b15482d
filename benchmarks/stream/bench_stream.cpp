// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/stream/bench_stream.h"

#include "benchmarks/stream/endless_shots.h"
#include "lib/qec/stream/stream_factory.h"
#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/common/sending_pace.h"
#include "tools/shots/own_data.h"
#include "tools/shots/stream_sampler.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace cudaq::realtime::tools {
namespace {

constexpr std::size_t kPoints = 100; ///< of the curve of the backlog
constexpr std::uint64_t kTenths = 10;

/// Resident memory of this program.
std::uint64_t resident_bytes() {
  std::uint64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

/// One tenth of an experiment.
struct tenth {
  std::uint64_t begin_ns = 0, begin_decode_ns = 0, begin_round = 0;
  double ns_per_round = 0, decode_ns_per_round = 0;
  std::uint64_t resident_bytes = 0; ///< at its end

  void begin(const qec::stream_decoder &stream, std::uint64_t round) {
    begin_round = round;
    begin_decode_ns = stream.statistics().decode_ns;
    begin_ns = now_ns();
  }
  void end(const qec::stream_decoder &stream, std::uint64_t round) {
    const double rounds = std::max(1.0, double(round - begin_round));
    ns_per_round = double(now_ns() - begin_ns) / rounds;
    decode_ns_per_round = double(stream.statistics().decode_ns - begin_decode_ns) / rounds;
    resident_bytes = tools::resident_bytes();
  }
};

/// An experiment with each round in bytes of its own, as push takes it.
struct played_rounds {
  std::vector<std::uint8_t> bits;
  std::vector<std::size_t> first;   ///< byte of each round, and the end
  std::vector<std::uint64_t> count; ///< bits of each round
  std::vector<std::uint8_t> tail;
};

std::vector<std::uint8_t> part_of(const std::vector<std::uint8_t> &bits, std::uint64_t begin, std::uint64_t count) {
  std::vector<std::uint8_t> part((count + 7) / 8);
  for (std::uint64_t k = 0; k < count; ++k)
    part[k / 8] = static_cast<std::uint8_t>(part[k / 8] | (bits[(begin + k) / 8] >> (begin + k) % 8 & 1) << k % 8);
  return part;
}

played_rounds rounds_of(const endless_sampler::shot &shot, const qec::repeating_model &model) {
  played_rounds made;
  const std::uint64_t before_tail = shot.detectors - model.tail_detectors();
  for (std::uint64_t round = 0; model.first_detector(round) < before_tail; ++round) {
    const std::uint64_t begin = model.first_detector(round), count = model.first_detector(round + 1) - begin;
    const std::vector<std::uint8_t> bits = part_of(shot.events, begin, count);
    made.first.push_back(made.bits.size());
    made.count.push_back(count);
    made.bits.insert(made.bits.end(), bits.begin(), bits.end());
  }
  made.first.push_back(made.bits.size());
  made.tail = part_of(shot.events, before_tail, model.tail_detectors());
  return made;
}

/// What happened while the rounds of one or more experiments were sent.
struct sent_rounds {
  latency_histogram lag; ///< rounds
  std::uint64_t busy = 0, late_ns = 0;
  tenth first, last;                                                        ///< of the last experiment
  std::vector<std::uint64_t> backlog = std::vector<std::uint64_t>(kPoints); ///< the largest lag in each part

  void add(const sent_rounds &experiment) {
    lag.merge(experiment.lag);
    busy += experiment.busy;
    late_ns = std::max(late_ns, experiment.late_ns);
    first = experiment.first;
    last = experiment.last;
    std::ranges::transform(backlog, experiment.backlog, backlog.begin(), std::ranges::max);
  }
};

/// What happened in all experiments with a final correction.
struct stream_counts {
  sent_rounds sent;
  latency_histogram tail_ns;
  std::uint64_t rounds = 0, windows = 0, decode_ns = 0, worst_decode_ns = 0;
  std::uint64_t worst_queue_rounds = 0, ns = 0, wrong = 0;
  qec::deadline_counts deadlines;
  sending_pace pace;
  std::uint64_t experiments = 0, broken = 0; ///< all experiments, and those without a final correction
  std::string first_fault;                   ///< of these
};

/// Plays one experiment. The calling thread keeps the pace by polling the clock.
void play(const played_rounds &experiment, const qec::repeating_model &model, double cycle_ns,
          const std::vector<std::uint8_t> &truth, qec::stream_decoder &stream, stream_counts &counts) {
  stream.reset();
  const std::uint64_t rounds = experiment.count.size(), begin = now_ns() + 1000;
  const auto due = [&](std::uint64_t round) { return begin + static_cast<std::uint64_t>(cycle_ns * double(round)); };
  qec::decode_status status = qec::decode_status::ok;
  const std::uint64_t part = std::max<std::uint64_t>(1, rounds / kTenths);
  std::uint64_t last_late_ns = 0, worst_lag = 0;
  sent_rounds own_rounds;
  own_rounds.first.begin(stream, 0);
  for (std::uint64_t round = 0; round < rounds && status == qec::decode_status::ok; ++round) {
    if (round == part)
      own_rounds.first.end(stream, round);
    if (round == rounds - part)
      own_rounds.last.begin(stream, round);
    std::uint64_t now = now_ns();
    for (; now < due(round); now = now_ns())
      ;
    if (cycle_ns != 0)
      own_rounds.late_ns = std::max(own_rounds.late_ns, now - due(round));
    last_late_ns = now - std::min(now, due(round));
    const std::span bits = std::span(experiment.bits)
                               .subspan(experiment.first[round], experiment.first[round + 1] - experiment.first[round]);
    while ((status = stream.push(bits, experiment.count[round])) == qec::decode_status::busy &&
           !interrupt_guard::interrupted())
      ++own_rounds.busy;
    // Rounds that are due and not final: also those that could not be sent yet.
    const std::uint64_t sent = round + 1, late = cycle_ns == 0 ? 0 : (now_ns() - due(round)) / std::uint64_t(cycle_ns);
    const std::uint64_t lag = sent + late - std::min(sent, stream.committed_rounds());
    own_rounds.lag.record(lag);
    // What waits for the rest of its window is not late.
    const std::uint64_t complete = qec::complete_rounds(stream);
    worst_lag = std::max(worst_lag, complete + late - std::min(complete, stream.committed_rounds()));
    std::uint64_t &max_lag = own_rounds.backlog[round * kPoints / rounds];
    max_lag = std::max(max_lag, lag);
  }
  own_rounds.last.end(stream, rounds);
  // The tail is complete with its last round.
  const std::uint64_t all = rounds + model.tail().size();
  while (status == qec::decode_status::ok && now_ns() < due(all - 1))
    ;
  const std::uint64_t end = cycle_ns == 0 ? now_ns() : due(all - 1);
  if (status == qec::decode_status::ok)
    status = stream.finish(experiment.tail, model.tail_detectors());
  // Polls: a thread that sleeps wakes up some tens of microseconds late.
  for (std::uint32_t k = 1; status == qec::decode_status::ok && stream.committed_rounds() != all; ++k)
    if (k % 4096 == 0)
      status = stream.poll().status;
  const std::uint64_t now = now_ns();
  const qec::stream_progress last = stream.poll();
  ++counts.experiments;
  if (!last.is_final) {
    if (++counts.broken == 1)
      counts.first_fault =
          qec::decode_status_text(status == qec::decode_status::ok ? last.status : status, stream.fault());
    return;
  }
  counts.sent.add(own_rounds);
  counts.pace.add(rounds, cycle_ns, last_late_ns, worst_lag);
  counts.tail_ns.record(now - std::min(end, now));
  counts.ns += now - begin;
  counts.rounds += all;
  const qec::stream_statistics own = stream.statistics();
  counts.windows += own.windows;
  counts.decode_ns += own.decode_ns;
  counts.worst_decode_ns = std::max(counts.worst_decode_ns, own.worst_decode_ns);
  counts.deadlines += own.deadlines;
  counts.worst_queue_rounds = std::max(counts.worst_queue_rounds, own.worst_queue_rounds);
  counts.wrong += !std::ranges::equal(stream.observables(), truth);
}

json tenth_json(const tenth &part) {
  return {{"ns_per_round", part.ns_per_round},
          {"decode_ns_per_round", part.decode_ns_per_round},
          {"resident_bytes", part.resident_bytes}};
}

json lag_json(const latency_histogram &h) {
  if (h.count() == 0)
    return {};
  return {{"p50", h.percentile(50)}, {"p99", h.percentile(99)}, {"p99.9", h.percentile(99.9)}, {"max", h.max()}};
}

qec::stream_mode mode_of(const std::string &name) {
  return name == "parallel"     ? qec::stream_mode::parallel
         : name == "sequential" ? qec::stream_mode::sequential
                                : qec::stream_mode::automatic;
}

json report_of(const bench_stream_options &o, const stream_counts &c, const std::string &description) {
  const double windows = std::max(1.0, double(c.windows)), rounds = std::max(1.0, double(c.rounds));
  const double seconds = 1e-9 * std::max(1.0, double(c.ns));
  return {{"method",
           "experiments are sampled before they are played; the calling thread pushes one round each cycle "
           "by polling CLOCK_MONOTONIC; lag: rounds that are due and not final, looked at after each push; "
           "tail: from the time that the last round is due to the final correction; an experiment without one is "
           "broken, and nothing else of it is counted; first and last tenth of the last experiment with a final "
           "correction, null if there is none: resident memory at the end of each, which contains all sampled rounds"},
          {"dem", o.dem_file},
          {"stream", description},
          {"workers", o.workers},
          {"cycle_us", o.cycle_us},
          {"pace_kept", c.pace.has_plan() ? json(c.pace.kept()) : json()},
          {"pace_ratio", c.pace.has_plan() ? json(c.pace.ratio()) : json()},
          {"pace_worst_rounds", c.pace.has_plan() ? json(c.pace.worst_lag()) : json()},
          {"seed", o.seed},
          {"experiments", c.experiments},
          {"rounds", c.rounds},
          {"rounds_per_second", c.rounds == 0 ? json() : json(rounds / seconds)},
          {"lag_rounds", lag_json(c.sent.lag)},
          {"tail_ns", latency_json(c.tail_ns)},
          {"backlog_rounds", c.sent.backlog},
          {"first_tenth", c.rounds == 0 ? json() : tenth_json(c.sent.first)},
          {"last_tenth", c.rounds == 0 ? json() : tenth_json(c.sent.last)},
          {"busy", c.sent.busy},
          {"worst_late_ns", c.sent.late_ns},
          {"windows", c.windows},
          {"decode_ns_per_window", double(c.decode_ns) / windows},
          {"decode_ns_per_round", double(c.decode_ns) / rounds},
          {"worst_decode_ns", c.worst_decode_ns},
          {"worst_queue_rounds", c.worst_queue_rounds},
          {"deadline_met", c.deadlines.met},
          {"deadline_missed", c.deadlines.missed},
          {"deadline_late", c.deadlines.late},
          {"wrong", c.wrong},
          {"broken", c.broken},
          {"first_fault", c.first_fault.empty() ? json() : json(c.first_fault)}};
}

/// Of the experiments with a final correction.
void print_counts(const stream_counts &counts, const output &out) {
  const sent_rounds &sent = counts.sent;
  out.text("pace          {}\n", counts.pace.text());
  out.text("lag, rounds   {}\n", sent.lag.count() == 0
                                     ? "-"
                                     : fmt::format("p50 {}  p99 {}  p99.9 {}  max {}", sent.lag.percentile(50),
                                                   sent.lag.percentile(99), sent.lag.percentile(99.9), sent.lag.max()));
  out.text("tail          {}\n", latency_line(counts.tail_ns));
  const double windows = std::max(1.0, double(counts.windows));
  out.text("windows       {}, {} each, at most {}; {} a round\n", counts.windows,
           format_ns(double(counts.decode_ns) / windows), format_ns(double(counts.worst_decode_ns)),
           format_ns(double(counts.decode_ns) / std::max(1.0, double(counts.rounds))));
  out.text("tenths        first: {} a round, {} of them in the decoder, {:.1f} MiB; last: {}, {}, {:.1f} MiB\n",
           format_ns(sent.first.ns_per_round), format_ns(sent.first.decode_ns_per_round),
           double(sent.first.resident_bytes) / (1 << 20), format_ns(sent.last.ns_per_round),
           format_ns(sent.last.decode_ns_per_round), double(sent.last.resident_bytes) / (1 << 20));
  out.text("rate          {} rounds per second; {} times busy; rounds at most {} late\n",
           format_rate(double(counts.rounds) / (1e-9 * std::max(1.0, double(counts.ns)))), sent.busy,
           format_ns(double(sent.late_ns)));
  out.text("wrong         {} of {} experiments\n", counts.wrong, counts.experiments - counts.broken);
}

} // namespace

int run_bench_stream(const bench_stream_options &o, const output &out) {
  const std::string text = read_dem_file(o.dem_file);
  const auto source = qec::read_stream(text, {.decoder = o.decoder,
                                              .commit = o.commit,
                                              .buffer = o.buffer,
                                              .rounds = o.rule,
                                              .mode = mode_of(o.mode),
                                              .workers = o.workers,
                                              .queue_rounds = o.queue_rounds});
  if (source.failed())
    throw usage_error(fmt::format("--dem {}: {}", o.dem_file, source.text()));
  const qec::repeating_model &model = source->model;
  const auto sampler = endless_sampler::make(model);
  if (sampler.failed())
    throw usage_error(fmt::format("--dem {}: {}", o.dem_file, sampler.text()));
  const qec::stream_result made = qec::make_stream_decoder(*source);
  if (!made)
    throw usage_error(fmt::format("--dem {}: {}", o.dem_file, made.error));
  const interrupt_guard guard;
  std::mt19937_64 random(o.seed);
  stream_counts counts;
  for (std::uint64_t k = 0; k < o.experiments && !interrupt_guard::interrupted(); ++k) {
    const std::uint64_t rounds = o.random_stops ? o.rounds / 2 + random() % (o.rounds / 2 + 1) : o.rounds;
    const std::uint64_t repetitions = std::max(repetitions_for(model, rounds), sampler->least_repetitions());
    const endless_sampler::shot shot = sampler->sample(repetitions, random);
    play(rounds_of(shot, model), model, 1000 * o.cycle_us, shot.observables, *made.instance, counts);
  }
  out.text("{}\n{} experiments, {} rounds, one each {} us; {}\n\n", o.dem_file, counts.experiments, counts.rounds,
           o.cycle_us, made.instance->description());
  if (counts.experiments != counts.broken)
    print_counts(counts, out);
  std::string failure;
  if (counts.broken != 0)
    failure = fmt::format("{} of {} experiments ended without a final correction; the first: {}", counts.broken,
                          counts.experiments, counts.first_fault);
  return out.finish(report_of(o, counts, made.instance->description()), failure, kExitCheckFailed,
                    ended(guard.interrupted(), counts.experiments, o.experiments, "experiments"));
}

} // namespace cudaq::realtime::tools
