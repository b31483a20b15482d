// SPDX-License-Identifier: Apache-2.0
// emulate --rounds: the run and its report.
#include "lib/qec/server/slot_size.h"
#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/common/terminal.h"
#include "tools/emulate/emulate.h"
#include "tools/emulate/links.h"
#include "tools/emulate/model_query.h"
#include "tools/emulate/play_loop.h"
#include "tools/emulate/search/search_run.h"
#include "tools/emulate/server_query.h"
#include "tools/emulate/stream_player.h"
#include "tools/html/html_page.h"
#include "tools/shots/config_shots.h"
#include "tools/shots/stream_record.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

json rounds_json(const latency_histogram &h) {
  if (h.count() == 0)
    return {};
  return {{"p50", h.percentile(50)}, {"p99", h.percentile(99)}, {"max", h.max()}};
}

/// An experiment without its last frame is a failure.
error_rate logical_errors(const stream_play_result &r) {
  return {r.logical_errors + r.unanswered(), r.experiments - r.cut};
}

double rounds_per_second(const stream_play_result &r) {
  return r.wall_ns == 0 ? 0 : static_cast<double>(r.rounds) * 1e9 / static_cast<double>(r.wall_ns);
}

void print_stream(const output &out, const stream_play_result &r, const stream_plan &plan, const link &to) {
  const link_counters c = to.counters();
  out.text("rounds        {} sent in {}: {}/s; {} of {} experiments to their end\n", r.rounds,
           format_ns(static_cast<double>(r.wall_ns)), format_rate(rounds_per_second(r)), r.ended, r.experiments);
  out.text("pace          {}\n", r.pace.text());
  out.text("lag           {}\n", latency_line(r.lag_time));
  out.raw(draw_histogram(r.lag_time));
  out.text("lag, rounds   {}\n", r.lag_rounds.count() == 0
                                     ? "-"
                                     : fmt::format("p50 {}, p99 {}, max {}", r.lag_rounds.percentile(50),
                                                   r.lag_rounds.percentile(99), r.lag_rounds.max()));
  out.text("window        {}\n", latency_line(r.window_time));
  out.text("tail          {}\n", latency_line(r.tail_time));
  out.text("round trip    {}\n", latency_line(r.request_time));
  out.text("frames        {} of {} as expected (the same windows, decoded here)\n",
           r.frames + r.missing - r.mismatches - r.unchecked, r.frames);
  if (r.undecided.total() != 0)
    out.text("no answer     {}\n", r.undecided.text(r.experiments, "experiment"));
  if (plan.knows_observables())
    out.text("logical       {}{}\n", logical_errors(r).text(), without_answer_text(r.unanswered(), "experiment"));
  out.text("link          {} requests, {} lost, {} repeated, {} busy, {} unexpected answers\n", r.requests, r.lost,
           c.repeated, r.busy, c.unexpected);
}

json stream_report(const emulate_options &o, const stream_play_result &r, const stream_plan &plan, const link &to,
                   const model_query &model, const std::string &served, const std::vector<std::string> &problems) {
  const link_counters c = to.counters();
  const error_rate logical = logical_errors(r);
  const auto if_known = [&plan](const json &value) { return plan.knows_observables() ? value : json(); };
  return {{"schema_version", kEmulateSchemaVersion},
          {"method", "lag: from the time when the last round of a frame was due to the answer with the frame; window: "
                     "of each window, also of those that a later frame answers, from the time when its last round was "
                     "due; tail: the same for the last round of an experiment; round trip: of requests that wait for "
                     "no round (CLOCK_MONOTONIC)"},
          {"link", to.describe()},
          {"protocol", "stream"},
          {"windows", plan.description()},
          {"commit", plan.commit()},
          {"buffer", plan.buffer()},
          {"cycle_us", o.cycle_us},
          {"pace_kept", r.pace.has_plan() ? json(r.pace.kept()) : json()},
          {"pace_ratio", r.pace.has_plan() ? json(r.pace.ratio()) : json()},
          {"pace_worst_rounds", r.pace.has_plan() ? json(r.pace.worst_lag()) : json()},
          {"rounds_per_experiment", plan.rounds()},
          {"recorded", o.stream},
          {"readout", plan.readout().any() ? json(plan.readout().text()) : json()},
          {"server_decoder", served.empty() ? json() : json(served)},
          {"server_has_other_model", model.answered ? json(!model.note.empty()) : json()},
          {"shots", r.experiments},
          {"shots_answered", r.ended},
          {"unanswered", r.unanswered()},
          {"rounds", r.rounds},
          {"rounds_per_second", rounds_per_second(r)},
          {"frames", r.frames},
          {"requests", r.requests},
          {"wall_ns", r.wall_ns},
          {"lag_ns", latency_json(r.lag_time)},
          {"lag_rounds", rounds_json(r.lag_rounds)},
          {"window_ns", latency_json(r.window_time)},
          {"tail_ns", latency_json(r.tail_time)},
          {"round_trip_ns", latency_json(r.request_time)},
          {"timeline", timeline_json(r.backlog)},
          {"lost", r.lost},
          {"repeated", c.repeated},
          {"busy", r.busy},
          {"unexpected_answers", c.unexpected},
          {"deadline_missed", r.undecided.at_deadline},
          {"not_converged", r.undecided.not_converged},
          {"error_statuses", r.bad_status},
          {"wrong_timestamps", r.wrong_echo},
          {"mismatches", r.mismatches},
          {"unchecked", r.unchecked},
          {"logical_errors", if_known(logical.errors)},
          {"logical_error_rate", if_known(logical.rate())},
          {"logical_error_interval_95", if_known({logical.interval_95().low, logical.interval_95().high})},
          {"stalled", r.stalled},
          {"notes", r.notes},
          {"problems", problems}};
}

std::string stream_html(const json &report, const stream_play_result &r) {
  html_page page("Endless experiment: " + report["link"].get<std::string>());
  page.add("Rounds", html_paragraph(fmt::format("{} rounds sent, one each {} us; {} of {} experiments to their end; {} "
                                                "frames, {} of them not the expected ones. Pace: {}.",
                                                r.rounds, report["cycle_us"].get<double>(), r.ended, r.experiments,
                                                r.frames, r.mismatches - r.missing, r.pace.text())));
  const std::vector<plotted_latency> lags{{"lag", &r.lag_time}, {"window", &r.window_time}, {"tail", &r.tail_time}},
      requests{{"round trip", &r.request_time}};
  constexpr measured_words kWords{"lag", "frames"};
  page.add("Backlog over time: lag", timeline_plot(r.backlog, kWords));
  page.add("Lag histogram", histogram_plot(lags, kWords));
  page.add("Lag percentiles", percentile_plot(lags, kWords) + latency_table(lags, kWords));
  page.add("Round trip of requests", histogram_plot(requests) + latency_table(requests));
  return page.text(report);
}

std::string stream_model(const emulate_options &o) {
  if (o.data.given())
    return read_dem_file(o.data.dem);
  throw usage_error(fmt::format("--dem is missing: {} needs the model of the server's stream, with a loop (repeat)",
                                o.stream ? "--stream" : "--rounds"));
}

/// The decoder of the check: that of --decoder, else the one that the server names, else auto.
stream_plan plan_of(const emulate_options &o, const std::string &text, const std::string &served) {
  const bool takes_served = !o.names_decoder && !served.empty();
  const auto result = takes_served ? check_served_decoder(served) : qec::expected<>();
  if (result.ok())
    try {
      return {text,      takes_served ? served : o.decoder,
              o.workers, o.rounds,
              o.seed,    takes_served ? kServedCheckLimit : std::chrono::nanoseconds::max(),
              o,         o.stream ? o.data : own_data()};
    } catch (const record_error &) {
      throw;
    } catch (const usage_error &e) {
      if (!takes_served)
        throw;
      throw usage_error(
          fmt::format("{} (the server's decoder is {}; --decoder gives another one to the check)", e.what(), served));
    }
  throw usage_error(
      fmt::format("the server's decoder is {}, and {}: give --decoder for the expected frames", served, result.text()));
}

} // namespace

int run_emulate_stream(const emulate_options &given, const output &out) {
  emulate_options o = given;
  out.open_hgrm({"lag", "tail"});
  const std::string dem_text = stream_model(o);
  // The server is asked first: its decoder decides what a round is, and where windows end.
  const bool size_is_given = o.slot_size != 0;
  if (!size_is_given)
    o.slot_size = qec::kUsualSlotSize;
  std::size_t bytes = qec::kGetCommittedBytes;
  const auto open = [&] { return make_served_link(o, stream_player::id_window(o), bytes); };
  std::unique_ptr<link> to = open();
  std::uint32_t next_id = 0;
  auto theirs = query_facts(*to, o, next_id);
  if (take_slot_size_of_server(to, o, size_is_given, bytes, open) && !theirs)
    theirs = query_facts(*to, o, next_id);
  const std::string served = theirs ? query_name(*to, o, next_id) : "";
  stream_plan plan = plan_of(o, dem_text, served);
  model_query model = compare_stream(o, theirs, plan.facts(), plan.readout());
  bytes = stream_player::payload_bytes(plan);
  if (!over_network(o)) // the slots are the server's: require_room refuses those that are too small
    o.slot_size = std::max(o.slot_size, static_cast<std::uint32_t>(bytes + CUDAQ_RPC_HEADER_SIZE));
  if (!theirs && !size_is_given && over_network(o)) { // the same choice as that of `serve`
    o.slot_size = qec::usual_slot_size(
        std::max(qec::bits_with_readout(plan.facts().detectors, plan.readout()), plan.facts().observables));
    if (o.slot_size == 0)
      throw usage_error("a repetition of the model does not fit into a slot: give --slot-size");
    to.reset();
    to = open();
  }
  if (bytes + CUDAQ_RPC_HEADER_SIZE > o.slot_size)
    throw usage_error(
        fmt::format("slots of {} bytes: a round of this model needs {}, here and on the server; give both a "
                    "larger --slot-size",
                    o.slot_size, bytes + CUDAQ_RPC_HEADER_SIZE));
  model.sent = next_id;
  const std::size_t slot = o.slot_size;
  to->require_room(slot - CUDAQ_RPC_HEADER_SIZE);
  out.text("experiment    {} rounds, one each {} us, {}; {}\n", plan.rounds(), o.cycle_us,
           o.stream ? "recorded" : "sampled", plan.description());
  if (plan.readout().any())
    out.text("readout       {} in a repetition, {}; sent as {}\n", plan.readout().text(),
             o.stream ? "recorded" : "drawn", o.soft_kind);
  out.text("link          {}; at most {} requests\n", to->describe(), stream_player::max_open(o));
  if (!model.note.empty())
    out.text("note          {}\n", model.note);
  const interrupt_guard interrupts; // until here there is nothing to report
  if (o.search_rate)
    return run_stream_search(o, plan, *to, slot, model.sent, interrupts, out);
  stream_player play(o, plan, *to, slot, &now_ns);
  play.begin_with(model.sent);
  progress display({"emulate", "rounds", o.shots * plan.rounds(), 0});
  play_to_end(play, interrupts, display, [&play] { return play.progress(); });
  stream_play_result result = play.result();
  if (!model.note.empty() && result.mismatches != 0)
    result.notes.push_back(model.note);
  if (result.stalled && result.frames == 0 && over_network(o))
    result.notes.push_back(size_advice(o));
  if (result.lost != 0 || result.bad_status != 0)
    if (std::string text = restart_note(*to, o, model, model.sent + static_cast<std::uint32_t>(result.requests));
        !text.empty())
      result.notes.push_back(std::move(text));
  const std::vector<std::string> problems = problems_of(result, interrupts.interrupted(), o.shots);
  print_stream(out, result, plan, *to);
  out.write_hgrm("lag", result.lag_time);
  out.write_hgrm("tail", result.tail_time);
  for (const std::string &note : result.notes)
    print_error("  {}\n", note);
  return out.finish(stream_report(o, result, plan, *to, model, served, problems),
                    fmt::format("{}", fmt::join(problems, "; ")), kExitCheckFailed,
                    ended(interrupts.interrupted(), result.ended, o.shots, "experiments"),
                    [&](const json &all) { return stream_html(all, result); });
}

} // namespace cudaq::realtime::tools
