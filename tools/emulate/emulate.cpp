// SPDX-License-Identifier: Apache-2.0
#include "tools/emulate/emulate.h"

#include "lib/qec/server/slot_size.h"
#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/common/output_file.h"
#include "tools/common/terminal.h"
#include "tools/emulate/links.h"
#include "tools/emulate/model_query.h"
#include "tools/emulate/play_loop.h"
#include "tools/emulate/player.h"
#include "tools/emulate/search/search_run.h"
#include "tools/emulate/server_query.h"
#include "tools/html/html_page.h"
#include "tools/services/decode_service.h"
#include "tools/shots/sampled_shots.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace cudaq::realtime::tools {
namespace {

/// What the corrections are compared with.
struct expectation {
  bool check = false;
  std::string text;   ///< for people: whose answers they are, or why there is no check
  std::string remedy; ///< if they differ
  /// Of drawn values: the same decoder on the same shots without them. Not there if it does not decode here.
  std::optional<error_rate> without_values{};
};

/// `is_servers`: only the server names this decoder. Then its check has a limit: throws usage_error with it.
expectation answers_of(const std::string &decoder, bool is_servers, shot_plan &plan, const emulate_options &o) {
  decode_service service(is_servers ? with_decode_limit(decoder) : decoder, plan.shots(), 1);
  const bool plain = decoder.find(':') == std::string::npos && std::string(service.decoder_name()) == "pymatching";
  if (plain && plan.shots().distance != 0 && !o.sample)
    return {true, fmt::format("as expected ({})", plan.predictions_name()), ""};
  const std::uint64_t count = o.duration_s != 0 ? UINT64_MAX : o.shots;
  const auto limit = is_servers ? kServedCheckLimit : std::chrono::nanoseconds::max();
  if (!plan.expect_answers_of(service, count, limit))
    throw usage_error(fmt::format("it is slow here: more than {} s for a shot, or {} s for all",
                                  kServedDecodeUs / 1'000'000, kServedCheckLimit.count()));
  expectation expected{
      true, fmt::format("as expected ({}, decoded here)", decoder),
      fmt::format("the expected corrections are those of {}: give --decoder as the server has it", decoder)};
  if (plan.readout() != nullptr && plan.readout()->is_drawn())
    expected.without_values = plan.errors_without_readout(service, count);
  return expected;
}

/// `served`: the name that the server gives to its decoder; "": none.
expectation expected_answers(const emulate_options &o, const std::string &served, shot_plan &plan) {
  const qec::shot_set &shots = plan.shots();
  const bool ring = o.transport == "ring"; // then the server is here, and has the decoder of --decoder
  if (o.names_decoder && !ring)
    return answers_of(o.decoder, false, plan, o);
  const bool is_drawn = plan.readout() != nullptr && plan.readout()->is_drawn();
  if (!shots.has_predictions() && !o.names_decoder && (served.empty() || !is_drawn))
    return {false,
            o.sample ? "not checked: sampled shots have no predictions; give --decoder"
                     : "not checked: the shots have no predictions; give --predictions or --decoder",
            ""};
  const expectation recorded{true, fmt::format("as expected ({})", plan.predictions_name()),
                             fmt::format("the expected corrections are {}: if the server has another decoder, give "
                                         "--decoder as it has it",
                                         plan.predictions_name())};
  if (shots.has_predictions() && (shots.distance == 0 || served.empty()))
    return recorded;
  const auto result = check_served_decoder(served, ring);
  std::string why = result.text();
  try {
    if (result.ok())
      return answers_of(served, !ring, plan, o);
  } catch (const usage_error &e) {
    why = e.what();
  }
  return {
      false,
      fmt::format("not checked: the server has the decoder {}, and {}{}", served, why, ring ? "" : "; give --decoder"),
      ""};
}

/// A shot without an answer is a failure: the experiment has no correction.
error_rate logical_errors(const play_result &r, const shot_plan &plan) {
  return {r.logical_errors + r.unanswered(), r.shots, plan.shots().shots};
}

std::string logical_text(const play_result &r, const shot_plan &plan) {
  return logical_errors(r, plan).text() + without_answer_text(r.unanswered());
}

void print(const output &out, const play_result &r, const shot_plan &plan, const expectation &expected,
           const link &to) {
  const link_counters c = to.counters();
  out.text("shots         {} played, {} answered in {}: {}/s\n", r.shots, r.answered,
           format_ns(static_cast<double>(r.wall_ns)),
           format_rate(r.wall_ns == 0 ? 0 : static_cast<double>(r.answered) * 1e9 / static_cast<double>(r.wall_ns)));
  out.text("round trip    {}\n", latency_line(r.request_time));
  out.raw(draw_histogram(r.request_time));
  out.text("shot          {}\n", latency_line(r.shot_time));
  out.text("corrections   {}{}\n",
           expected.check ? fmt::format("{} of {} ", r.answered + r.missing - r.mismatches, r.answered) : "",
           expected.text);
  if (r.undecided.total() != 0)
    out.text("no answer     {}\n", r.undecided.text(r.shots));
  if (plan.shots().has_observables())
    out.text("logical       {}\n", logical_text(r, plan));
  if (expected.without_values)
    out.text("hard bits     {}; the same shots and decoder without the values\n", expected.without_values->text());
  if (r.bad_status != 0)
    out.text("statuses      {} answers with an error\n", r.bad_status);
  out.text("link          {} requests, {} lost, {} repeated, {} busy, {} unexpected answers, {} shots begun late\n",
           r.requests, r.lost, c.repeated, r.busy, c.unexpected, r.late);
}

json json_of(const error_rate &rate) {
  return {{"errors", rate.errors},
          {"shots", rate.trials},
          {"rate", rate.rate()},
          {"interval_95", {rate.interval_95().low, rate.interval_95().high}}};
}

json report(const emulate_options &o, const play_result &r, const shot_plan &plan, const expectation &expected,
            const link &to, const model_query &model, const std::string &served,
            const std::vector<std::string> &problems) {
  const link_counters c = to.counters();
  const error_rate logical = logical_errors(r, plan);
  return {{"schema_version", kEmulateSchemaVersion},
          {"method", "round trip: from the clock read just before the request is sent, which the answer echoes, to the "
                     "clock read after the answer was received (CLOCK_MONOTONIC); shot: from the scheduled time to the "
                     "last answer"},
          {"link", to.describe()},
          {"protocol", o.protocol},
          {"streams", player::streams(o)},
          {"rate", o.rate},
          {"data", plan.shots().name},
          {"readout", plan.readout() != nullptr ? json(plan.readout()->facts().text()) : json()},
          {"server_decoder", served.empty() ? json() : json(served)},
          {"corrections_checked", expected.text},
          {"server_has_other_model", model.answered ? json(!model.note.empty()) : json()},
          {"shots", r.shots},
          {"shots_answered", r.answered},
          {"unanswered", r.unanswered()},
          {"requests", r.requests},
          {"wall_ns", r.wall_ns},
          {"round_trip_ns", latency_json(r.request_time)},
          {"shot_ns", latency_json(r.shot_time)},
          {"timeline", timeline_json(r.timeline)},
          {"lost", r.lost},
          {"repeated", c.repeated},
          {"busy", r.busy},
          {"busy_given_up", r.busy_given_up},
          {"deadline_missed", r.undecided.at_deadline},
          {"not_converged", r.undecided.not_converged},
          {"unexpected_answers", c.unexpected},
          {"begun_late", r.late},
          {"error_statuses", r.bad_status},
          {"wrong_timestamps", r.wrong_echo},
          {"mismatches", expected.check ? json(r.mismatches) : json()},
          {"logical_errors", plan.shots().has_observables() ? json(logical.errors) : json()},
          {"logical_error_rate", plan.shots().has_observables() ? json(logical.rate()) : json()},
          {"logical_error_interval_95",
           plan.shots().has_observables() ? json({logical.interval_95().low, logical.interval_95().high}) : json()},
          {"without_readout", expected.without_values ? json_of(*expected.without_values) : json()},
          {"stalled", r.stalled},
          {"notes", r.notes},
          {"problems", problems}};
}

qec::shot_set shots_of(const emulate_options &o) {
  if (!o.sample)
    return o.data.given() ? load_own_shots(o.data) : load_shots(find_data_folder(o.data_folder), o.config, o.noise);
  if (o.data.given())
    return sample_shots("--dem " + o.data.dem, read_dem_file(o.data.dem), o.shots, o.seed);
  const qec::shot_set recorded = load_shots(find_data_folder(o.data_folder), o.config, o.noise);
  return sample_shots(recorded.name, recorded.dem_text, o.shots, o.seed);
}

std::string emulate_html(const json &report, const play_result &r, const shot_plan &plan) {
  html_page page("Emulated control system: " + report["link"].get<std::string>());
  page.add("Shots", html_paragraph(fmt::format("{} played, {} answered; {} requests, {} lost, {} shots begun late.",
                                               r.shots, r.answered, r.requests, r.lost, r.late)));
  if (plan.shots().has_observables())
    page.add("Logical errors", html_paragraph(logical_text(r, plan)));
  const std::vector<plotted_latency> latencies{{"round trip of a request", &r.request_time},
                                               {"shot, since due", &r.shot_time}};
  page.add("Latency histogram", histogram_plot(latencies));
  page.add("Latency percentiles", percentile_plot(latencies) + latency_table({{"round trip", &r.request_time},
                                                                              {"shot, since due", &r.shot_time}}));
  page.add("Timeline", timeline_plot(r.timeline));
  return page.text(report);
}

/// Advice if answers did not come.
std::vector<std::string> advice(const emulate_options &o, const play_result &r, const link_counters &c) {
  if (c.other_size != 0)
    return {fmt::format("the server's answers have {} bytes, not {}: give --slot-size {}", c.other_size, o.slot_size,
                        c.other_size)};
  if (r.stalled && r.answered == 0 && over_network(o))
    return {size_advice(o)};
  return {};
}

} // namespace

int run_emulate(const emulate_options &given, const output &out) {
  emulate_options o = given;
  out.open_hgrm({"round_trip"});
  const std::unique_ptr<output_file> ila = open_ila(o.ila_file);
  qec::shot_set shots = shots_of(o);
  std::optional<recorded_readout> readout;
  if (!o.readout.empty() && o.sample)
    readout.emplace(o, shots, o.seed);
  else if (!o.readout.empty())
    readout.emplace(o, std::as_const(shots));
  const recorded_readout *const known = readout ? &*readout : nullptr;
  const bool size_is_given = o.slot_size != 0;
  if (!size_is_given)
    o.slot_size = qec::usual_slot_size(
        qec::bits_with_readout(shots.num_detectors, readout ? readout->facts() : qec::readout_facts{}));
  if (o.slot_size == 0 && over_network(o))
    throw usage_error(fmt::format("a shot of {} detectors{} does not fit into a slot", shots.num_detectors,
                                  readout ? " with its soft values" : ""));
  shot_plan plan(shots, o.sample ? 0 : o.seed, known);
  const std::uint32_t streams = player::streams(o);
  const std::size_t bytes = player::payload_bytes(o, shots, known);
  const bool ring = o.transport == "ring";
  const auto open = [&] { return make_served_link(o, player::id_window(o), bytes); };
  std::unique_ptr<link> to = ring ? make_ring_link(o, shots, player::id_window(o)) : open();
  model_query model = ring ? model_query() : query_model(*to, o, shots, known);
  if (take_slot_size_of_server(to, o, size_is_given, bytes, open) && !model.answered)
    model = query_model(*to, o, shots, known, model.sent);
  to->require_room(bytes);
  const std::string served = ring ? o.decoder : model.answered ? query_name(*to, o, model.sent) : "";
  out.text("shots         {}: {}\n", shots.name,
           o.sample ? fmt::format("{} detectors = {} bytes per request", shots.num_detectors, shots.detection_bytes())
                    : describe(shots));
  if (readout)
    out.text("readout       {}\n", readout->facts().text());
  out.text("link          {}; {} stream{}{}\n", to->describe(), streams, streams == 1 ? "" : "s",
           o.rate == 0 ? "" : fmt::format(", {}/s", format_rate(o.rate)));

  if (!model.note.empty())
    out.text("note          {}\n", model.note);
  const expectation expected = expected_answers(o, served, plan);
  const interrupt_guard interrupts; // until here there is nothing to report
  if (o.search_rate)
    return run_rate_search(o, plan, expected.check, *to, model.sent, interrupts, out);
  player play(o, plan, expected.check, *to, &now_ns);
  play.begin_with(model.sent);
  run_trace trace(out.traces() ? 0 : 1);
  if (out.traces())
    play.record(trace);
  exchange_record times;
  if (ila != nullptr)
    play.keep_times(times);
  progress display({"emulate", "shots", o.shots, static_cast<std::uint64_t>(o.duration_s * 1e9)});
  play_to_end(play, interrupts, display, [&play] { return play.answered(); });
  play_result result = play.result();
  if (!model.note.empty() && result.mismatches != 0)
    result.notes.push_back(model.note);
  if (!expected.remedy.empty() && result.mismatches != 0)
    result.notes.push_back(expected.remedy);
  for (std::string &text : advice(o, result, to->counters()))
    result.notes.push_back(std::move(text));
  if (result.lost != 0 || result.bad_status != 0)
    if (std::string text = restart_note(*to, o, model, model.sent + static_cast<std::uint32_t>(result.requests));
        !text.empty())
      result.notes.push_back(std::move(text));
  out.write_trace([&](std::ostream &file) { write_trace(file, {{{"emulate", "client", "client", "", {}}, &trace}}); });
  const std::vector<std::string> problems =
      problems_of(result, interrupts.interrupted(), o.duration_s != 0 ? 0 : o.shots);
  print(out, result, plan, expected, *to);
  out.write_hgrm("round_trip", result.request_time);
  times.write_csv(ila.get());
  if (times.left_out() != 0)
    print_error("  --ila: only the first {} requests; {} are left out\n", exchange_record::kMax, times.left_out());
  for (const std::string &note : result.notes)
    print_error("  {}\n", note);
  return out.finish(report(o, result, plan, expected, *to, model, served, problems),
                    fmt::format("{}", fmt::join(problems, "; ")), kExitCheckFailed,
                    ended(interrupts.interrupted(), result.shots, o.duration_s != 0 ? kNotKnown : o.shots, "shots"),
                    [&](const json &all) { return emulate_html(all, result, plan); });
}

} // namespace cudaq::realtime::tools
