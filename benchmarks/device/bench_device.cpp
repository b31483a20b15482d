// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/common/bench.h"

#include "benchmarks/device/bench_rigs.h"
#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/common/machine.h"
#include "tools/common/terminal.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint64_t kCurveExchanges = 20000; ///< upper limit for each point of a curve
constexpr std::uint32_t kCurveRounds = 4;

bench_options for_curves(bench_options o) {
  o.exchanges = std::min(o.exchanges, kCurveExchanges);
  o.rounds = std::min(o.rounds, kCurveRounds);
  return o;
}

/// GPU, driver, clocks and cores of a run.
bench_context describe_session(const bench_session &session) {
  bench_context c;
  cudaDeviceProp properties{};
  require_cuda(cudaGetDeviceProperties(&properties, session.options().gpu), "cudaGetDeviceProperties");
  c.gpu_name = properties.name;
  c.compute_capability = fmt::format("{}.{}", properties.major, properties.minor);
  c.multiprocessors = properties.multiProcessorCount;
  c.driver = read_line("/proc/driver/nvidia/version");
  require_cuda(cudaDriverGetVersion(&c.cuda_driver_version), "cudaDriverGetVersion");
  require_cuda(cudaRuntimeGetVersion(&c.cuda_runtime_version), "cudaRuntimeGetVersion");
  require_cuda(cudaDeviceGetAttribute(&c.clock_khz, cudaDevAttrClockRate, session.options().gpu),
               "cudaDeviceGetAttribute");
  c.client_cores = session.cores();
  c.any_order_threads = session.any_order_threads();
  c.ns_per_tick = session.scale().ns_per_tick();
  c.timer_overhead_ns = session.scale().overhead_ns();
  return c;
}

measured_case named(const char *name, const std::string &what, std::size_t payload_bytes) {
  measured_case c;
  c.name = name;
  c.what = what;
  c.payload_bytes = payload_bytes;
  return c;
}

/// Measures all rounds of one case and its floors.
bench_result measure_rounds(bench_session &session, const bench_case &of, const bench_rig &rig, progress &display,
                            std::size_t rounds_before) {
  bench_result result{
      of, named("floor", of.floor, rig.floor_payload_bytes), named("ours", of.what, rig.payload_bytes), {}};
  for (const auto &[what, run] : rig.other_floors)
    result.other_floors.push_back(named("floor", what, rig.floor_payload_bytes));
  // After Ctrl-C the round is completed.
  for (std::uint32_t round = 0; round < session.options().rounds && !(round != 0 && interrupt_guard::interrupted());
       ++round) {
    display.show(rounds_before + round, now_ns()); // nothing is measured meanwhile
    result.floor.add_round(rig.floor());
    result.ours.add_round(rig.ours());
    for (std::size_t i = 0; i < rig.other_floors.size(); ++i)
      result.other_floors[i].add_round(rig.other_floors[i].second());
  }
  return result;
}

} // namespace

int run_suite(const bench_suite &suite, const bench_options &options, const output &out) {
  const bench_options o = effective(options);
  for (const int core : o.cores)
    require_core("--cores", core);
  std::vector<std::string> histograms;
  for (const bench_case &of : suite.cases)
    for (const char *side : {"floor", "ours"})
      histograms.push_back(fmt::format("{}.{}", of.name, side));
  out.open_hgrm(histograms);
  open_gpu(o.gpu);
  const interrupt_guard guard;
  bench_session session(o);
  bench_context context = describe_session(session);
  context.method = suite.method;
  const std::uint64_t switches = involuntary_switches();
  std::vector<bench_result> results;
  std::vector<bench_curve> curves;
  const char *now = "curves";
  try {
    progress display({"benchmark", "repetitions of cases", suite.cases.size() * o.rounds});
    for (const bench_case &of : suite.cases) {
      if (guard.interrupted())
        break;
      now = of.name;
      results.push_back(measure_rounds(session, of, suite.make_rig(session, of), display, results.size() * o.rounds));
    }
    now = "curves";
    if (o.curves && !guard.interrupted()) {
      session.use(for_curves(o));
      curves = suite.measure_curves(session, context);
    }
  } catch (const exchange_stalled &e) {
    throw check_failed(fmt::format("{}: FAILED within {} s: {}", now, o.timeout_s, e.what()));
  }
  context.involuntary_switches = involuntary_switches() - switches;
  context.measured_clock_mhz = session.measured_clock_mhz;
  return report_bench(out, o, context, results, curves);
}

int run_bench_device(const bench_options &options, const output &out) {
  return run_suite({"", cases_with_memory(options, all_bench_cases(), "gpu-memory"), make_rig, measure_curves}, options,
                   out);
}

} // namespace cudaq::realtime::tools
