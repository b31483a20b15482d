// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/common/bench_report.h"

#include "tools/common/clock.h"
#include "tools/common/interrupt.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

constexpr char kMethod[] =
    "floors and cases alternate in every round, histograms of all rounds are merged; closed loop: from just before the "
    "rx flag is set to just after the tx flag is seen, without the frame, the test that the slot is free, and the "
    "check of the reply; rates: exchanges divided by the wall time of the rounds, latency of every 16th request; "
    "device-ring: GPU cycles by clock64 in the producer kernel, not converted; idle-poll: wall time divided by the "
    "empty polls that dispatcher and floor count; a floor frame of 4096 B is a header and 4072 B of payload, the cases "
    "have 4096 B of payload; all payloads are random, every reply is checked (id, status, content)";

std::string value_text(double value, const std::string &unit) {
  return unit == "ns" ? format_ns(value) : fmt::format("{:.0f} cyc", value);
}

std::string at(const measured_case &c, double percent, const std::string &unit) {
  return value_text(static_cast<double>(c.total.per_exchange.percentile(percent)), unit);
}

std::string main_figure(const measured_case &c, const bench_case &of) {
  return of.metric == bench_metric::p50_ratio ? at(c, 50, of.unit) : format_rate(c.total.per_second()) + "/s";
}

double floor_ratio(const bench_result &result) {
  return result.of.metric == bench_metric::rate ? rate_ratio("", result.ours, result.floor).pooled
                                                : ratio_of(result).pooled;
}

json series_json(const measured_case &c, const std::string &unit) {
  json buckets = json::array();
  c.total.per_exchange.each_bucket([&](std::uint64_t upper, std::uint64_t count) {
    buckets.push_back(json::array({upper, count}));
  });
  return {{"what", c.what},
          {"unit", unit},
          {"payload_bytes", c.payload_bytes},
          {"exchanges", c.total.exchanges},
          {"wrong", c.total.wrong},
          {"per_second", c.total.per_second()},
          {"wall_ns", c.total.wall_ns},
          {"per_exchange", latency_json(c.total.per_exchange)},
          {"round_p50", c.round_p50},
          {"round_per_second", c.round_rate},
          {"histogram", buckets}};
}

json result_json(const bench_result &r) {
  json j = {{"name", r.of.name},
            {"what", r.of.what},
            {"metric", r.of.metric == bench_metric::p50_ratio    ? "p50 over the floor's"
                       : r.of.metric == bench_metric::rate_ratio ? "exchanges per second over the floor's"
                                                                 : "exchanges per second"},
            {"ratio", ratio_json(ratio_of(r))},
            {"ratio_to_floor", floor_ratio(r)},
            {"floor", series_json(r.floor, r.of.unit)},
            {"ours", series_json(r.ours, r.of.unit)}};
  j["other_floors"] = json::array();
  for (const measured_case &f : r.other_floors)
    j["other_floors"].push_back(series_json(f, r.of.unit));
  return j;
}

json curve_json(const bench_curve &curve) {
  json j = {{"name", curve.name},
            {"what", curve.what},
            {"x", curve.x_name},
            {"figure", curve.rate ? "exchanges per second" : "p50 in ns"}};
  j["points"] = json::array();
  for (const curve_point &p : curve.points) {
    json point = {{"x", p.x}, {"ours", series_json(p.ours, "ns")}};
    if (p.floor)
      point["floor"] = series_json(*p.floor, "ns");
    j["points"].push_back(point);
  }
  return j;
}

void print_results(const output &out, const std::vector<bench_result> &results) {
  out.text("\n{:<34} {:>10} {:>10} {:>6} {:>9} {:>9} {:>9}  {}\n", "case", "floor", "ours", "ratio", "p99", "p99.9",
           "max", "what");
  for (const bench_result &r : results) {
    out.text("{:<34} {:>10} {:>10} {:>6.2f} {:>9} {:>9} {:>9}  {}\n", r.of.name, main_figure(r.floor, r.of),
             main_figure(r.ours, r.of), floor_ratio(r), at(r.ours, 99, r.of.unit), at(r.ours, 99.9, r.of.unit),
             at(r.ours, 100, r.of.unit), r.of.what);
    for (const measured_case &f : r.other_floors)
      out.text("{:<34} {:>10}  floor: {}\n", "", main_figure(f, r.of), f.what);
  }
}

void print_curve(const output &out, const bench_curve &curve) {
  out.text("\n{}\n{:>12} {:>11} {:>11} {:>6} {:>9} {:>9} {:>9}\n", curve.what, curve.x_name, "floor", "ours", "ratio",
           "p99", "p99.9", "max");
  for (const curve_point &p : curve.points) {
    const auto figure = [&](const measured_case &c) {
      return curve.rate ? format_rate(c.total.per_second()) + "/s" : at(c, 50, "ns");
    };
    const std::string floor = p.floor ? figure(*p.floor) : "-";
    const std::string ratio = p.floor ? fmt::format("{:.2f}", curve.rate ? rate_ratio("", p.ours, *p.floor).pooled
                                                                         : latency_ratio("", p.ours, *p.floor).pooled)
                                      : "-";
    out.text("{:>12} {:>11} {:>11} {:>6} {:>9} {:>9} {:>9}\n", p.x, floor, figure(p.ours), ratio, at(p.ours, 99, "ns"),
             at(p.ours, 99.9, "ns"), at(p.ours, 100, "ns"));
  }
}

} // namespace

ratio_line ratio_of(const bench_result &r) {
  const bench_case &c = r.of;
  switch (c.metric) {
  case bench_metric::p50_ratio:
    return latency_ratio(c.what, r.ours, r.floor);
  case bench_metric::rate_ratio:
    return rate_ratio(c.what, r.ours, r.floor);
  case bench_metric::rate:
    break;
  }
  return plain_rate(c.what, r.ours);
}

void print_bench(const output &out, const bench_options &o, const bench_context &context,
                 const std::vector<bench_result> &results, const std::vector<bench_curve> &curves) {
  out.text("{}, compute capability {}, driver CUDA {}, runtime CUDA {}; {} repetitions, floors and cases alternate\n",
           context.gpu_name, context.compute_capability, format_cuda_version(context.cuda_driver_version),
           format_cuda_version(context.cuda_runtime_version), o.rounds);
  out.text("client cores: {}; timer: {}; it takes {:.0f} ns of every exchange, also of the floors; not subtracted\n",
           context.client_cores.empty() ? "not pinned" : fmt::format("{}", fmt::join(context.client_cores, ",")),
           ticks_name(), context.timer_overhead_ns);
  if (context.measured_clock_mhz > 0)
    out.text("GPU clock during device-ring: {:.0f} MHz\n", context.measured_clock_mhz);
  if (context.involuntary_switches > 0)
    out.text("note: the measuring thread lost its core {} times; the tails include that time\n",
             context.involuntary_switches);
  if (o.quick)
    out.text("note: --quick checks that everything works; it is too short for measurements\n");
  if (!results.empty())
    print_results(out, results);
  for (const bench_curve &curve : curves)
    print_curve(out, curve);
  for (const std::string &note : context.notes)
    out.text("\n{}\n", note);
}

json bench_json_body(const bench_options &o, const bench_context &context, const std::vector<bench_result> &results,
                     const std::vector<bench_curve> &curves) {
  json j = {{"gpu",
             {{"name", context.gpu_name},
              {"compute_capability", context.compute_capability},
              {"driver", context.driver},
              {"cuda_driver_version", format_cuda_version(context.cuda_driver_version)},
              {"cuda_runtime_version", format_cuda_version(context.cuda_runtime_version)},
              {"multiprocessors", context.multiprocessors},
              {"highest_clock_mhz", context.clock_khz / 1000},
              {"measured_clock_mhz", context.measured_clock_mhz}}},
            {"method",
             {{"what", context.method.empty() ? kMethod : context.method},
              {"timer", ticks_name()},
              {"ns_per_tick", context.ns_per_tick},
              {"timer_overhead_ns", context.timer_overhead_ns},
              {"timer_overhead_subtracted", false},
              {"histogram", "pairs of the upper end of a bucket and its count"},
              {"exchanges", o.exchanges},
              {"rounds", o.rounds},
              {"quick", o.quick},
              {"client_cores", context.client_cores},
              {"any_order_threads", context.any_order_threads},
              {"involuntary_context_switches", context.involuntary_switches},
              {"seed", o.seed}}}};
  j["cases"] = json::array();
  for (const bench_result &r : results)
    j["cases"].push_back(result_json(r));
  j["curves"] = json::array();
  for (const bench_curve &curve : curves)
    j["curves"].push_back(curve_json(curve));
  if (!context.notes.empty())
    j["notes"] = context.notes;
  return j;
}

int report_bench(const output &out, const bench_options &o, const bench_context &context,
                 const std::vector<bench_result> &results, const std::vector<bench_curve> &curves) {
  print_bench(out, o, context, results, curves);
  const std::uint64_t wrong = wrong_replies(results, curves);
  std::size_t rounds = 0;
  for (const bench_result &r : results) {
    rounds += r.ours.round_p50.size();
    out.write_hgrm(fmt::format("{}.floor", r.of.name), r.floor.total.per_exchange);
    out.write_hgrm(fmt::format("{}.ours", r.of.name), r.ours.total.per_exchange);
  }
  return out.finish(bench_json_body(o, context, results, curves),
                    wrong == 0 ? "" : fmt::format("{} wrong replies", wrong), kExitCheckFailed,
                    ended(interrupt_guard::interrupted(), rounds, kNotKnown, "repetitions of cases"),
                    [&](const json &all) { return bench_html(all, results, curves); });
}

std::uint64_t wrong_replies(const std::vector<bench_result> &results, const std::vector<bench_curve> &curves) {
  std::uint64_t wrong = 0;
  for (const bench_result &r : results) {
    wrong += r.floor.total.wrong + r.ours.total.wrong;
    for (const measured_case &f : r.other_floors)
      wrong += f.total.wrong;
  }
  for (const bench_curve &curve : curves)
    for (const curve_point &p : curve.points)
      wrong += p.ours.total.wrong + (p.floor ? p.floor->total.wrong : 0);
  return wrong;
}

} // namespace cudaq::realtime::tools
