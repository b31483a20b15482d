// SPDX-License-Identifier: Apache-2.0
#include "tools/latency/latency_report.h"

#include "tools/common/terminal.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

constexpr int kLatencySchemaVersion = 2; ///< 1: ratios had targets

const latency_case &find(const std::vector<latency_case> &cases, std::string_view name) {
  return *std::ranges::find_if(cases, [&](const latency_case &c) { return c.name == name; });
}

std::vector<ratio_line> all_ratios(const std::vector<latency_case> &cases) {
  const auto at = [&](const char *name) -> const latency_case & { return find(cases, name); };
  std::vector<ratio_line> all = {
      latency_ratio("closed loop 32 B, p50, over floor (a)", at(kHostClosed32), at(kTwoFlags32)),
      latency_ratio("  part of the ring: the ring alone over floor (a)", at(kRingClosed32), at(kTwoFlags32)),
      latency_ratio("  part of the dispatcher: closed loop over the ring alone", at(kHostClosed32), at(kRingClosed32)),
      latency_ratio("closed loop empty, p50, over floor (a) without payload", at(kHostClosed0), at(kTwoFlags0)),
      rate_ratio("pipelined 32 B, throughput over floor (b)", at(kHostPiped32), at(kRingPiped32)),
      rate_ratio("pipelined empty, throughput over floor (b)", at(kHostPiped0), at(kRingPiped0))};
  if (std::ranges::find(cases, kTimedPiped0, &latency_case::name) != cases.end()) {
    all.push_back(
        latency_ratio("closed loop empty, p50, with handler times over without", at(kTimedClosed0), at(kHostClosed0)));
    all.push_back(
        rate_ratio("pipelined empty, throughput with handler times over without", at(kTimedPiped0), at(kHostPiped0)));
  }
  return all;
}

} // namespace

void print_latency(const output &out, const latency_options &o, const latency_context &context,
                   const std::vector<latency_case> &cases) {
  out.text("client on core {}, server on core {}; ring of {} slots{}; {} repetitions, floors and cases alternate\n",
           context.client_core, context.server_core, o.slots, o.in_place ? ", in place" : "", o.rounds);
  out.text("timer: {}; it takes {:.0f} ns of every exchange, also of the floors; not subtracted\n", ticks_name(),
           context.timer_overhead_ns);
  if (context.share_core)
    out.text("WARNING: client and server share one core: these figures measure the system's scheduler\n");
  if (context.involuntary_switches > 0)
    out.text("note: the client lost its core {} times; the tails include that time\n", context.involuntary_switches);
  out.text("per second: 64 divided by the median time of 64 exchanges\n");
  out.text("\n{:<52} {:>8} {:>8} {:>8} {:>8} {:>9} {:>10}\n", "case", "min", "p50", "p99", "p99.9", "max",
           "per second");
  for (const latency_case &c : cases) {
    const latency_histogram &h = c.total.per_exchange;
    const auto ns = [](std::uint64_t value) { return format_ns(static_cast<double>(value)); };
    out.text("{:<52} {:>8} {:>8} {:>8} {:>8} {:>9} {:>10}\n", c.what, ns(h.min()), ns(h.percentile(50)),
             ns(h.percentile(99)), ns(h.percentile(99.9)), ns(h.max()), format_rate(c.total.per_second()));
  }
  for (const char *name : {kTwoFlags32, kHostClosed32}) {
    const latency_case &c = find(cases, name);
    out.text("\n{}\n", c.what);
    out.raw(draw_histogram(c.total.per_exchange));
  }
  out.text("\nratios (all rounds together; min, median, max of the rounds)\n");
  for (const ratio_line &r : all_ratios(cases))
    out.text("  {:<62} {:5.2f}   ({:.2f} {:.2f} {:.2f})\n", r.what, r.pooled, r.round_min, r.round_median, r.round_max);
}

json latency_json_body(const latency_options &o, const latency_context &context,
                       const std::vector<latency_case> &cases) {
  json j = {{"schema_version", kLatencySchemaVersion},
            {"method",
             {{"timer", ticks_name()},
              {"ns_per_tick", context.ns_per_tick},
              {"timer_overhead_ns", context.timer_overhead_ns},
              {"timer_overhead_subtracted", false},
              {"what",
               "closed loop: one request at a time, from before the frame is written to after the result is copied "
               "(the test that the slot is free comes before that); floor (a): from before the payload is written to "
               "after the reply is copied, on other cache lines in each round; pipelined: as many in flight as slots, "
               "latency of every 16th request; per_second: 64 divided by the median time of 64 exchanges; "
               "wall_per_second: by the wall clock; ratios: p50 or throughput of all rounds together; all payloads "
               "random, all replies checked; not in the figures: network, control system"},
              {"rounds", o.rounds},
              {"quick", o.quick},
              {"client_core", context.client_core},
              {"server_core", context.server_core},
              {"share_core", context.share_core},
              {"involuntary_context_switches_client", context.involuntary_switches},
              {"slots", o.slots},
              {"in_place", o.in_place},
              {"handler_times", o.handler_times},
              {"seed", o.seed}}}};
  j["cases"] = json::array();
  for (const latency_case &c : cases)
    j["cases"].push_back({{"name", c.name},
                          {"what", c.what},
                          {"payload_bytes", c.payload_bytes},
                          {"exchanges", c.total.exchanges},
                          {"wrong", c.total.wrong},
                          {"wall_ns", c.total.wall_ns},
                          {"per_second", c.total.per_second()},
                          {"wall_per_second", c.total.wall_per_second()},
                          {"lap_64_ns", latency_json(c.total.laps)},
                          {"latency_ns", latency_json(c.total.per_exchange)},
                          {"round_p50_ns", c.round_p50},
                          {"round_per_second", c.round_rate}});
  j["ratios"] = json::array();
  for (const ratio_line &r : all_ratios(cases)) {
    json entry = {{"what", r.what + std::string_view(r.what).find_first_not_of(' ')}};
    entry.update(ratio_json(r));
    j["ratios"].push_back(entry);
  }
  return j;
}

} // namespace cudaq::realtime::tools
