// SPDX-License-Identifier: Apache-2.0
#include "tools/demo/demo_report.h"

#include "tools/common/system_files.h"
#include "tools/common/terminal.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

std::string load_text(const pass_config &config) {
  return config.cadence_ns == 0 ? "as fast as possible"
                                : fmt::format("one shot every {}", format_ns(static_cast<double>(config.cadence_ns)));
}

std::uint64_t drops(const cudaq_dispatcher_stats_t &s) {
  return s.dropped_bad_magic + s.dropped_unknown_function + s.dropped_flag_value;
}

} // namespace

error_rate logical_errors(const pass_result &r, const shot_plan &plan) {
  return {r.logical_errors + r.unanswered(), r.sent, plan.shots().shots};
}

error_rate reference_rate(const pass_result &r, const shot_plan &plan) {
  return {r.golden_logical_errors, r.answered, plan.shots().shots};
}

void print_pass(const output &out, const pass_result &r, const shot_plan &plan) {
  const double per_shot = r.answered == 0 ? 0 : static_cast<double>(r.wall_ns) / static_cast<double>(r.answered);
  out.text("\n{}: {}\n", r.config.label, load_text(r.config));
  out.text("  shots         {} sent, {} answered in {}: {}/s ({} per shot; the decoder alone {})\n", r.sent, r.answered,
           format_ns(static_cast<double>(r.wall_ns)), format_rate(r.shots_per_second()), format_ns(per_shot),
           format_ns(plan.offline_ns_per_shot()));
  out.text("  latency       {}\n", latency_line(r.from_sent));
  if (r.config.cadence_ns != 0)
    out.text("    since due   {}\n", latency_line(r.from_due));
  out.raw(draw_histogram(r.from_sent));
  const qec::shot_set &shots = plan.shots();
  const std::uint64_t corrections = r.answered - r.faults - r.bad_status - r.undecided.total();
  out.text("  corrections   {} of {} as expected ({})", corrections - std::min(corrections, r.mismatches - r.missing),
           corrections, expected_text(plan));
  if (r.missing != 0)
    out.text("; {} missing", r.missing);
  if (shots.has_predictions())
    out.text("; {} differ from {}", r.golden_differences, plan.predictions_name());
  out.text("\n");
  if (r.undecided.total() != 0)
    out.text("  no answer     {}\n", r.undecided.text(r.sent));
  if (shots.has_observables())
    out.text("  logical       {} errors, rate {:.5f}{}", logical_errors(r, plan).errors, logical_errors(r, plan).rate(),
             without_answer_text(r.unanswered()));
  else
    out.text("  logical       errors are not counted: the shots have no true observables (--obs_in)");
  if (shots.has_observables() && shots.has_predictions())
    out.text("; {} on the same shots: {}, rate {:.5f}", plan.predictions_name(), r.golden_logical_errors,
             reference_rate(r, plan).rate());
  out.text("\n");
  out.text("  backpressure  {} shots waited for their slot, {} in total; {} answers collected out of order\n", r.stalls,
           format_ns(static_cast<double>(r.stalled_ns)), r.out_of_order);
  out.text("  dispatcher    {} received, {} answered, {} dropped{}\n", r.stats.received, r.stats.responded,
           drops(r.stats), r.problems.empty() ? "; the client counted the same" : "");
  if (r.involuntary_switches != 0)
    out.text("  note          the client lost its core {} times to {}; the latencies include that time\n",
             r.involuntary_switches,
             system_files("").cpu_quota() ? "other programs, or because the CPU quota of its container was used up"
                                          : "other programs");
  for (const std::string &note : r.notes)
    out.text("    {}\n", note);
  for (const std::string &problem : r.problems)
    out.text("  FAILED        {}\n", problem);
}

std::string expected_text(const shot_plan &plan) {
  return plan.expects_offline() ? "the same decoder offline" : plan.predictions_name();
}

std::string reference_text(const shot_plan &plan, const std::string &decoder) {
  const paired_errors &e = plan.reference_errors();
  return e.shots == 0 ? ""
                      : fmt::format("{} logical errors by {}, {} by {}; {} recorded shots, each decoded once", e.with,
                                    decoder, e.without, plan.reference_name(), e.shots);
}

std::string reference_warning(const shot_plan &plan, const std::string &decoder) {
  const paired_errors &e = plan.reference_errors();
  if (e.shots == 0 || !e.beyond_chance())
    return "";
  return fmt::format("{} makes {} logical errors than {} on the same {} shots, beyond chance: {} and {}", decoder,
                     e.with > e.without ? "more" : "fewer", plan.reference_name(), e.shots, e.with, e.without);
}

json reference_json(const shot_plan &plan, const std::string &decoder) {
  const paired_errors &e = plan.reference_errors();
  if (e.shots == 0)
    return nullptr;
  return {{"name", plan.reference_name()},      {"shots", e.shots},
          {"decoder_logical_errors", e.with},   {"reference_logical_errors", e.without},
          {"only_decoder", e.only_with},        {"only_reference", e.only_without},
          {"beyond_chance", e.beyond_chance()}, {"warning", reference_warning(plan, decoder)}};
}

json stats_json(const cudaq_dispatcher_stats_t &s) {
  json protocol = json::object();
  for (int i = 0; i < CUDAQ_RPC_ERROR_COUNT; ++i)
    if (s.protocol_errors[i] != 0)
      protocol[std::to_string(-1000 - i)] = s.protocol_errors[i];
  return {{"received", s.received},
          {"dispatched", s.dispatched},
          {"responded", s.responded},
          {"in_flight", s.in_flight},
          {"dropped_bad_magic", s.dropped_bad_magic},
          {"dropped_unknown_function", s.dropped_unknown_function},
          {"dropped_flag_value", s.dropped_flag_value},
          {"unexpected_flag_values", s.unexpected_flag_values},
          {"handler_errors", s.handler_errors},
          {"protocol_errors", protocol},
          {"tx_busy_waits", s.tx_busy_waits},
          {"cursor_jumps", s.cursor_jumps}};
}

json pass_json(const pass_result &r, const shot_plan &plan) {
  json j = {{"label", r.config.label},
            {"cadence_ns", r.config.cadence_ns},
            {"client_threads", r.config.client_threads},
            {"shots_sent", r.sent},
            {"shots_answered", r.answered},
            {"wall_ns", r.wall_ns},
            {"shots_per_second", r.shots_per_second()},
            {"latency_ns", latency_json(r.from_sent)}};
  if (r.config.cadence_ns != 0)
    j["latency_since_due_ns"] = latency_json(r.from_due);
  j["timeline"] = timeline_json(r.timeline);
  j.update({{"mismatches", r.mismatches},
            {"wrong_frames", r.faults},
            {"error_statuses", r.bad_status},
            {"expected_answers", plan.expects_offline() ? "same decoder offline" : plan.predictions_json_name()},
            {"lost", r.sent - r.answered},
            {"duplicates", r.leftover_answers},
            {"drops", drops(r.stats)},
            {"out_of_order", r.out_of_order},
            {"involuntary_context_switches_client", r.involuntary_switches},
            {"backpressure_stalls", r.stalls},
            {"backpressure_ns", r.stalled_ns},
            {"stalled", r.stalled},
            {"dispatcher", stats_json(r.stats)},
            {"dispatcher_processed", r.processed},
            {"notes", r.notes},
            {"problems", r.problems}});
  const bool golden = plan.shots().has_predictions(), truth = plan.shots().has_observables();
  const auto number = [](bool known, auto value) { return known ? json(value) : json(); };
  j.update({{"differences_from_pymatching", number(golden, r.golden_differences)},
            {"unanswered", r.unanswered()},
            {"not_converged", r.undecided.not_converged},
            {"deadline_missed", r.undecided.at_deadline},
            {"logical_errors", number(truth, logical_errors(r, plan).errors)},
            {"logical_error_rate", number(truth, logical_errors(r, plan).rate())},
            {"pymatching_offline_logical_errors", number(golden && truth, r.golden_logical_errors)},
            {"pymatching_offline_logical_error_rate", number(golden && truth, reference_rate(r, plan).rate())}});
  return j;
}

} // namespace cudaq::realtime::tools
