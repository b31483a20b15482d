// SPDX-License-Identifier: Apache-2.0
#include "tools/pipeline/pipeline_report.h"

#include "lib/qec/decoding/predecoder.h"
#include "tools/common/machine.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

constexpr int kPipelineSchemaVersion = 3; ///< 1 had config.rule; 2 deadline_statuses, now deadline_missed

/// The warning about the accuracy of this engine; empty if the answers are the matcher's alone.
std::string accuracy_warning(const std::string &engine) {
  if (engine == "passthrough")
    return "";
  if (qec::is_learned_predecoder(engine))
    return "a network changes the answers of matching: measure it on your code and noise "
           "(share/doc/cudaq-realtime/docs/predecoding.md)";
  return "the local predecoder makes more logical errors than matching alone: measured 1.3 to 2.6 times as many, for "
         "d 7 to 13 and p 0.001 to 0.003";
}

double events_taken(const pipeline_shots &shots) {
  return shots.events_per_shot() == 0 ? 0 : 1 - shots.residual_per_shot() / shots.events_per_shot();
}

json stage_json(const latency_histogram &stage, const pipeline_result &r) {
  json j = latency_json(stage);
  j["share_of_mean"] = r.from_submit.mean() == 0 ? 0 : stage.mean() / r.from_submit.mean();
  return j;
}

} // namespace

void print_pipeline_header(const output &out, const pipeline_options &o, const qec::decoding_config &config,
                           const qec::experimental::pipeline_stage_config &stages, const pipeline_shots &shots,
                           const std::string &staging) {
  const qec::shot_set &set = shots.shots();
  out.text("config    {}: {}{}\n", config.name, config.rounds == 0 ? "" : fmt::format("{} basis, ", config.basis),
           describe(set));
  out.text("engine    {} on the {}: {:.1f} events per shot, {:.1f} after it ({:.0f} % removed)\n", shots.engine(),
           staging.empty() ? "CPU" : "GPU, requests " + staging, shots.events_per_shot(), shots.residual_per_shot(),
           100 * events_taken(shots));
  if (!shots.choice().empty())
    out.text("choice    {}\n", shots.choice());
  out.text("decoder   {}{}\n", shots.decoder_name(),
           shots.decoder_choice().empty() ? "" : ": " + shots.decoder_choice());
  if (shots.offline_unanswered().total() != 0)
    out.text("          no answer offline to {}\n", shots.offline_unanswered().text(set.shots));
  if (const std::string warning = accuracy_warning(shots.engine()); !warning.empty())
    out.text("accuracy  {}\n", warning);
  out.text("offline   {} per shot with the engine, {} by the matcher alone\n", format_ns(shots.offline_ns_per_shot()),
           format_ns(shots.matcher_ns_per_shot()));
  out.text("pipeline  {} worker{}, {} slots of {} bytes; {}; {} cores\n\n", stages.num_workers,
           stages.num_workers == 1 ? "" : "s", stages.num_slots, stages.slot_size,
           o.rate == 0 ? "as fast as possible" : format_rate(o.rate) + " shots/s offered", allowed_cores().size());
}

void print_pipeline_result(const output &out, const qec::decoding_config &config, const pipeline_shots &shots,
                           const pipeline_result &r) {
  out.text("submitted {}   completed {}   timed out {}   wrong {}\n", r.submitted, r.completed, r.timed_out,
           r.mismatches + r.failed + r.error_status);
  if (r.undecided.total() != 0)
    out.text("no answer           {}\n", r.undecided.text(r.submitted));
  out.text("throughput          {} shots/s\n", format_rate(r.shots_per_second()));
  out.text("backpressure        {} submissions waited, {} in total\n", r.backpressure_stalls,
           format_ns(static_cast<double>(r.stalled_ns)));
  out.text("latency             {}\n", latency_line(r.from_submit));
  out.text("                    mean {}  stddev {}{}\n", format_ns(r.from_submit.mean()),
           format_ns(r.standard_deviation()),
           config.rounds == 0
               ? ""
               : fmt::format("  per round (/{}) {}", config.rounds, format_ns(r.from_submit.mean() / config.rounds)));
  if (r.from_due.max() != r.from_submit.max())
    out.text("since due           {}\n", latency_line(r.from_due));
  const auto stage = [&](const char *name, const latency_histogram &h) {
    out.text("{} mean {:>8}  ({:4.1f} %)   {}\n", name, format_ns(h.mean()),
             r.from_submit.mean() == 0 ? 0 : 100 * h.mean() / r.from_submit.mean(), latency_line(h));
  };
  stage("A dispatch, engine ", r.stage_a);
  stage("B matching         ", r.stage_b);
  stage("C consumer         ", r.stage_c);
  const paired_errors &e = shots.errors();
  if (e.shots == 0) {
    out.text("logical errors      not counted: the shots have no true observables (--obs_in)\n");
    return;
  }
  out.text("logical errors      {} with {}{}; {} by the matcher alone{}", error_rate{e.with, e.shots}.text(),
           shots.engine(), without_answer_text(shots.offline_unanswered().total()), e.without,
           without_answer_text(shots.unanswered_alone().total()));
  if (e.with != 0 && e.without != 0) {
    const auto [low, high] = e.ratio_interval();
    out.text("; ratio {:.2f} (95 %: {:.2f} to {:.2f})", e.ratio(), low, high);
  }
  out.text("\n");
}

json pipeline_json(const pipeline_options &o, const qec::decoding_config &config,
                   const qec::experimental::pipeline_stage_config &stages, const pipeline_shots &shots,
                   const pipeline_result &r) {
  const paired_errors &e = shots.errors();
  json errors = {{"shots", e.shots},
                 {"with_predecoder", e.with},
                 {"matcher_alone", e.without},
                 {"only_with_predecoder", e.only_with},
                 {"only_matcher_alone", e.only_without}};
  if (e.with != 0 && e.without != 0) {
    const auto [low, high] = e.ratio_interval();
    errors["ratio"] = e.ratio();
    errors["ratio_95_percent"] = {low, high};
  }
  if (e.shots == 0)
    errors = nullptr; // no true observables
  const auto if_known = [&config](auto value) { return config.rounds == 0 ? json() : json(value); };
  return {{"schema_version", kPipelineSchemaVersion},
          {"problems", r.problems},
          {"method",
           "latency: from the clock read just before the accepted submission to the clock read in the completion "
           "handler (CLOCK_MONOTONIC); stage A ends where the CPU stage begins, stage C begins where it ends; "
           "every answer is compared with the same decode done offline"},
          {"config",
           {{"name", config.name},
            {"distance", if_known(config.distance)},
            {"rounds", if_known(config.rounds)},
            {"basis", if_known(std::string(1, config.basis))},
            {"noise", if_known(shots.shots().noise)},
            {"detectors", shots.shots().num_detectors},
            {"observables", shots.shots().num_observables},
            {"request_bytes", shots.shots().detection_bytes()},
            {"slot_size", stages.slot_size},
            {"slots", stages.num_slots},
            {"workers", stages.num_workers},
            {"engine", shots.engine()},
            {"choice", shots.choice()},
            {"decoder", shots.decoder_name()},
            {"decoder_choice", shots.decoder_choice()},
            {"device", o.device},
            {"staging", o.staging},
            {"plan", o.plan},
            {"rate", o.rate},
            {"wait", o.wait},
            {"seed", o.seed},
            {"core_producer", o.cores.producer},
            {"core_consumer", o.cores.consumer},
            {"core_dispatcher", o.cores.dispatcher},
            {"core_workers", o.cores.workers}}},
          {"offline_ns_per_shot", shots.offline_ns_per_shot()},
          {"matcher_alone_ns_per_shot", shots.matcher_ns_per_shot()},
          {"events_per_shot", shots.events_per_shot()},
          {"residual_events_per_shot", shots.residual_per_shot()},
          {"event_reduction", events_taken(shots)},
          {"accuracy_warning", accuracy_warning(shots.engine())},
          {"logical_errors", errors},
          {"submitted", r.submitted},
          {"completed", r.completed},
          {"timed_out", r.timed_out},
          {"failed", r.failed},
          {"error_statuses", r.error_status},
          {"unanswered", r.undecided.total()},
          {"not_converged", r.undecided.not_converged},
          {"deadline_missed", r.undecided.at_deadline},
          {"mismatches", r.mismatches},
          {"out_of_turn", r.out_of_turn},
          {"backpressure_stalls", r.backpressure_stalls},
          {"stalled_ns", r.stalled_ns},
          {"wall_ns", r.wall_ns},
          {"shots_per_second", r.shots_per_second()},
          {"latency_ns", latency_json(r.from_submit)},
          {"latency_stddev_ns", r.standard_deviation()},
          {"latency_per_round_ns", if_known(r.from_submit.mean() / std::max(config.rounds, 1u))},
          {"latency_since_due_ns", latency_json(r.from_due)},
          {"timeline", timeline_json(r.timeline)},
          {"stage_a_ns", stage_json(r.stage_a, r)},
          {"stage_b_ns", stage_json(r.stage_b, r)},
          {"stage_c_ns", stage_json(r.stage_c, r)}};
}

} // namespace cudaq::realtime::tools
