// SPDX-License-Identifier: Apache-2.0
#include "tools/demo/demo.h"

#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/common/machine.h"
#include "tools/demo/demo_pass.h"
#include "tools/demo/demo_report.h"
#include "tools/services/host_service.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

constexpr int kDemoSchemaVersion = 2; ///< 1: passes had deadline_statuses, now deadline_missed

/// Cadence of the paced pass, as a multiple of the time per shot of the pass before it: about 60 % of that pass's load.
constexpr double kPacedSlack = 1.6;
constexpr std::uint32_t kSpinsWithOwnCore = 20000;
constexpr std::uint32_t kSpinsOnSharedCore = 200;

/// The choices that follow from the options and the machine.
struct demo_setup {
  std::string config = "d13";
  unsigned client_threads = 1;
  std::size_t cores = 1;
  cudaq_wait_policy_t wait = CUDAQ_WAIT_SPIN;
  std::uint32_t client_spins = 0;
  std::string notice; ///< explains to the user a choice that the program made
};

const char *wait_name(cudaq_wait_policy_t wait) {
  switch (wait) {
  case CUDAQ_WAIT_SPIN:
    return "spin";
  case CUDAQ_WAIT_SPIN_YIELD:
    return "yield";
  case CUDAQ_WAIT_BLOCK:
    return "block";
  }
  return "unknown";
}

/// `o` with the number of workers: one for each core that dispatcher and client leave.
demo_options with_workers(demo_options o) {
  constexpr int kMaxWorkers = 64;
  const int others = 1 + static_cast<int>(o.client_threads != 0 ? o.client_threads : 2);
  if (o.workers == kAutoWorkers)
    o.workers = std::clamp(static_cast<int>(allowed_cores().size()) - others, 1, kMaxWorkers);
  return o;
}

demo_setup decide(const demo_options &o) {
  demo_setup s;
  s.cores = allowed_cores().size();
  if (!o.config.empty()) {
    s.config = o.config;
  } else if (!o.data.given() && (o.decoder == "lookup" || !qec::pymatching_available())) {
    s.config = "d3";
    s.notice = o.decoder == "lookup" ? "d3: the lookup decoder serves small codes only"
                                     : "d3: PyMatching is not built in, and the lookup decoder serves small "
                                       "codes only; `cudaq-realtime info` shows how to get PyMatching";
  }
  const bool pinned_apart = o.cores.producer >= 0 && o.cores.consumer >= 0 && o.cores.producer != o.cores.consumer;
  const std::size_t service_threads = o.device == "gpu" ? 0 : 1 + static_cast<std::size_t>(o.workers);
  s.client_threads = o.client_threads != 0 ? o.client_threads : pinned_apart || s.cores >= service_threads + 2 ? 2 : 1;
  const bool cores_for_all = s.cores >= service_threads + s.client_threads;
  s.wait = o.wait == "spin"    ? CUDAQ_WAIT_SPIN
           : o.wait == "yield" ? CUDAQ_WAIT_SPIN_YIELD
           : o.wait == "block" ? CUDAQ_WAIT_BLOCK
           : cores_for_all     ? CUDAQ_WAIT_SPIN
                               : CUDAQ_WAIT_SPIN_YIELD;
  s.client_spins = cores_for_all ? kSpinsWithOwnCore : kSpinsOnSharedCore;
  return s;
}

std::uint32_t slot_bytes_of(const qec::shot_set &shots) {
  return CUDAQ_RPC_HEADER_SIZE +
         static_cast<std::uint32_t>(std::max(shots.detection_bytes(), shots.observable_bytes()));
}

ring_service_config service_config(const demo_options &o, const demo_setup &s, const qec::shot_set &shots) {
  ring_service_config c;
  c.num_slots = o.slots;
  c.slot_bytes = slot_bytes_of(shots);
  c.in_place = o.in_place;
  c.options = default_options();
  c.options.ordering = o.workers == 0 ? CUDAQ_ORDERING_FIFO : CUDAQ_ORDERING_ANY;
  c.options.handler_pool_size = static_cast<std::uint32_t>(o.workers);
  c.options.wait_policy = s.wait;
  c.options.dispatcher_core = o.cores.dispatcher;
  c.options.handler_core_base = o.cores.workers;
  c.options.check_schema = 1;
  c.options.strict_flag_values = 1;
  return c;
}

pass_config first_pass(const demo_options &o, const demo_setup &s) {
  pass_config c;
  c.label = o.rate ? "pass" : "pass 1";
  c.shots = o.shots;
  c.duration_ns = static_cast<std::uint64_t>(o.duration_s * 1e9);
  c.cadence_ns = o.rate.value_or(0) == 0 ? 0 : static_cast<std::uint64_t>(std::llround(1e9 / *o.rate));
  c.timeout_ns = static_cast<std::uint64_t>(o.timeout_s * 1e9);
  c.client_threads = s.client_threads;
  c.core_producer = o.cores.producer;
  c.core_consumer = o.cores.consumer;
  c.client_spins = s.client_spins;
  c.interrupted = &interrupt_guard::flag();
  return c;
}

void print_header(const output &out, const demo_options &o, const demo_setup &s, const shot_plan &plan,
                  const decode_service &service, const decode_place *place) {
  const qec::shot_set &shots = plan.shots();
  if (!s.notice.empty())
    out.text("note: {}\n", s.notice);
  out.text("shots    {}: {}\n", shots.name, describe(shots));
  const std::uint64_t offline = shots.shots - plan.offline_unanswered().total();
  out.text("decoder  {}{}; offline before the passes: {}{} per shot\n", service.decoder_name(),
           std::string(service.decoder_name()) == "pymatching" ? fmt::format(" {}", qec::pymatching_version()) : "",
           shots.has_predictions() ? fmt::format("{} of {} answers equal {}, ", offline - plan.offline_differences(),
                                                 offline, plan.predictions_name())
                                   : "",
           format_ns(plan.offline_ns_per_shot()));
  if (!service.decoder_choice().empty())
    out.text("choice   {}\n", service.decoder_choice());
  if (plan.offline_unanswered().total() != 0)
    out.text("no answer offline to {}\n", plan.offline_unanswered().text(shots.shots));
  if (const std::string reference = reference_text(plan, service.decoder_name()); !reference.empty())
    out.text("errors   {}\n", reference);
  const std::string server =
      place != nullptr
          ? "decoded " + place->text
          : fmt::format("handlers {}; dispatcher waits by {}",
                        o.workers == 0 ? "inline" : fmt::format("on {} workers", o.workers), wait_name(s.wait));
  out.text("ring     {} slots{}; {}; client {} thread{}; {} core{}\n", o.slots, o.in_place ? ", in place" : "", server,
           s.client_threads, s.client_threads == 1 ? "" : "s", s.cores, s.cores == 1 ? "" : "s");
}

json demo_json(const demo_options &o, const demo_setup &s, const shot_plan &plan, const decode_service &service,
               const std::vector<pass_result> &passes) {
  const qec::shot_set &shots = plan.shots();
  json j = {
      {"schema_version", kDemoSchemaVersion},
      {"method", "latency: from the clock read just before the request frame is written to the clock read after "
                 "the answer's flag was seen (CLOCK_MONOTONIC); since due: from the scheduled time"},
      {"data",
       {{"name", shots.name},
        {"distance", shots.distance},
        {"rounds", shots.rounds},
        {"noise", shots.noise},
        {"shots", shots.shots},
        {"detectors", shots.num_detectors},
        {"request_bytes", shots.detection_bytes()}}},
      {"decoder",
       {{"name", service.decoder_name()},
        {"choice", service.decoder_choice()},
        {"pymatching_version", qec::pymatching_version()},
        {"instances", service.instances()},
        {"offline_ns_per_shot", plan.offline_ns_per_shot()},
        {"offline_without_answer", plan.offline_unanswered().total()},
        {"offline_differences_from_pymatching", shots.has_predictions() ? json(plan.offline_differences()) : json()}}},
      {"config",
       {{"device", o.device},
        {"slots", o.slots},
        {"workers", o.workers},
        {"wait", wait_name(s.wait)},
        {"in_place", o.in_place},
        {"client_threads", s.client_threads},
        {"seed", o.seed},
        {"core_producer", o.cores.producer},
        {"core_consumer", o.cores.consumer},
        {"core_dispatcher", o.cores.dispatcher},
        {"core_workers", o.cores.workers},
        {"notice", s.notice}}}};
  j["reference"] = reference_json(plan, service.decoder_name());
  j["passes"] = json::array();
  for (const pass_result &r : passes)
    j["passes"].push_back(pass_json(r, plan));
  return j;
}

run_end end_of(const demo_options &o, const std::vector<pass_result> &passes, bool signalled) {
  const pass_result &last = passes.back();
  const std::string unit = o.rate ? "shots" : fmt::format("shots of pass {} of 2", passes.size());
  const bool last_pass = o.rate || passes.size() == 2;
  return ended(signalled, last.sent, o.duration_s == 0 && last_pass ? o.shots : kNotKnown, unit.c_str());
}

/// Of all passes.
std::string verdict(const std::vector<pass_result> &passes, const std::string &expected) {
  unanswered_shots undecided;
  std::uint64_t sent = 0;
  for (const pass_result &r : passes) {
    undecided += r.undecided;
    sent += r.sent;
  }
  return undecided.verdict(sent, expected);
}

std::vector<traced_run> traced_passes(const demo_options &o, const demo_setup &s,
                                      const std::vector<pass_result> &passes, const std::deque<run_trace> &traces) {
  const bool one_thread = s.client_threads < 2;
  std::vector<traced_run> runs;
  for (std::size_t k = 0; k < passes.size(); ++k)
    runs.push_back({{passes[k].config.label,
                     one_thread ? "client" : "sender",
                     one_thread ? "client" : "collector",
                     o.workers == 0 ? "dispatcher" : "handler thread",
                     {"wait for the handler", "decode", "wait for the client"}},
                    &traces[k]});
  return runs;
}

} // namespace

int run_demo(const demo_options &options, const output &out, const decode_place *place) {
  const demo_options o = with_workers(options);
  require_cores(o.cores, o.workers);
  out.open_hgrm(o.rate ? std::vector<std::string>{"pass1"} : std::vector<std::string>{"pass1", "pass2"});
  const demo_setup setup = decide(o);
  const qec::shot_set shots =
      o.data.given() ? load_own_shots(o.data) : load_shots(find_data_folder(o.data_folder), setup.config, o.noise);
  shot_plan plan(shots, o.seed);
  // One decoder for each thread that may run handlers: the pool's threads and the dispatcher's thread.
  const auto decoders = std::make_shared<decode_service>(o.decoder, shots, static_cast<std::uint32_t>(o.workers) + 1);
  // Predictions of the user are the expected answers of this decoder.
  const bool other_decoder = !o.data.given() && std::string(decoders->decoder_name()) != "pymatching";
  plan.decode_offline(*decoders, other_decoder || !shots.has_predictions());
  print_header(out, o, setup, plan, *decoders, place);
  const interrupt_guard guard; // until here there is nothing to report
  if (place != nullptr)
    place->prepare(shots);

  const cudaq_handler_schema_t schema = decoders->schema();
  std::vector<pass_result> passes;
  pass_config config = first_pass(o, setup);
  bool ok = true;
  std::deque<run_trace> traces;
  const auto run = [&] {
    if (out.traces()) {
      config.trace = &traces.emplace_back(config.duration_ns != 0 ? 0 : config.shots);
      if (place == nullptr) { // else the times of the kernel are not known
        decoders->record_spans(o.slots);
        config.handled = &decoders->spans();
      }
    }
    const std::unique_ptr<ring_service> service =
        place != nullptr ? place->make(schema, slot_bytes_of(shots))
                         : std::make_unique<host_service>(service_config(o, setup, shots), kDecodeFunctionId,
                                                          &decode_service::handle, decoders, &schema);
    const pass_result &r = passes.emplace_back(run_pass(*service, plan, config));
    print_pass(out, r, plan);
    out.write_hgrm(fmt::format("pass{}", passes.size()), r.from_sent);
    ok = ok && r.problems.empty();
    if (!r.dump.empty())
      print_error("state at the stall:\n{}", r.dump);
  };
  run();
  if (!o.rate && ok && !interrupt_guard::interrupted() && passes[0].answered != 0) {
    config.label = "pass 2";
    config.cadence_ns = static_cast<std::uint64_t>(kPacedSlack * 1e9 / passes[0].shots_per_second());
    run();
  }
  out.write_trace([&](std::ostream &file) { write_trace(file, traced_passes(o, setup, passes, traces)); });
  if (const std::string warning = reference_warning(plan, decoders->decoder_name()); !warning.empty())
    out.text("\nwarning: {}\n", warning);
  const run_end end = end_of(o, passes, interrupt_guard::interrupted());
  if (ok && end.partial.empty())
    out.text("\n{}\n", verdict(passes, plan.expects_offline() ? expected_text(plan)
                                                              : fmt::format("{} say", expected_text(plan))));
  else if (!ok)
    for (const std::string &note : passes.back().notes)
      print_error("  {}\n", note);
  return out.finish(demo_json(o, setup, plan, *decoders, passes),
                    fmt::format("{}", fmt::join(passes.back().problems, "; ")), kExitCheckFailed, end,
                    [&](const json &all) { return demo_html(all, passes, plan); });
}

} // namespace cudaq::realtime::tools
