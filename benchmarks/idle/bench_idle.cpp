// SPDX-License-Identifier: Apache-2.0
// `idle`: what the number of slots costs a dispatcher on the host path that has nothing to do.
#include "benchmarks/common/bench.h"

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"
#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/common/terminal.h"
#include "tools/html/html_page.h"
#include "tools/ring/ring_port.h"
#include "tools/services/host_service.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint32_t kEchoId = fnv1a_hash("bench_idle");
constexpr std::uint32_t kMaxSlots = 1u << 20;
constexpr std::chrono::milliseconds kIdleness{2}; ///< before each request and each stop

std::int32_t answer_nothing(cudaq_host_call_t *, void *) { return 0; }

/// The measurements with one number of slots.
struct idle_point {
  std::uint32_t slots = 0;
  latency_histogram request, stop; ///< nanoseconds
};

/// One request in `slot`; returns its time from the signal to the answer.
std::uint64_t request_ns(const host_service &service, std::uint32_t slot, std::uint64_t timeout_ns) {
  const ring_port port(service.ring());
  port.write(slot, kEchoId, {}, slot, 0);
  const std::uint64_t begin = now_ns();
  port.signal(slot);
  while (port.poll(slot) != CUDAQ_TX_READY)
    if (now_ns() - begin > timeout_ns)
      throw check_failed("FAILED: no answer within the time of one request");
  const std::uint64_t took = now_ns() - begin;
  port.give_back(slot);
  return took;
}

/// Ends after Ctrl-C, with the round that runs.
idle_point measure(std::uint32_t slots, const bench_options &o, progress &display, std::uint64_t rounds_before) {
  ring_service_config config;
  config.num_slots = slots;
  config.options = default_options();
  config.options.wait_policy = CUDAQ_WAIT_SPIN_YIELD; // the client may share the dispatcher's core
  host_service service(config, kEchoId, &answer_nothing, nullptr, nullptr);
  idle_point point;
  point.slots = slots;
  for (std::uint32_t round = 0; round <= o.rounds; ++round) {
    display.show(rounds_before + round, now_ns());
    service.start();
    std::this_thread::sleep_for(kIdleness);
    const std::uint64_t request = request_ns(service, round % slots, static_cast<std::uint64_t>(o.timeout_s * 1e9));
    std::this_thread::sleep_for(kIdleness);
    const std::uint64_t begin = now_ns();
    service.stop();
    const std::uint64_t stop = now_ns() - begin;
    if (round == 0) // warm-up
      continue;
    point.request.record(request);
    point.stop.record(stop);
    if (interrupt_guard::interrupted())
      break;
  }
  return point;
}

void print(const output &out, const bench_options &o, const std::vector<idle_point> &points) {
  out.text("one request, and a stop, after {} ms without work; {} repetitions\n", kIdleness.count(), o.rounds);
  out.text("\n{:>8} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}\n", "slots", "request min", "p50", "max", "stop min",
           "p50", "max");
  const auto ns = [](std::uint64_t value) { return format_ns(static_cast<double>(value)); };
  for (const idle_point &p : points)
    out.text("{:>8} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}\n", p.slots, ns(p.request.min()),
             ns(p.request.percentile(50)), ns(p.request.max()), ns(p.stop.min()), ns(p.stop.percentile(50)),
             ns(p.stop.max()));
}

std::string idle_html(const json &report, const std::vector<idle_point> &points) {
  html_page page("An idle dispatcher on the host path, by the slots of its ring");
  page.add("Method", html_paragraph(report["method"]["what"].get<std::string>()));
  std::vector<plotted_latency> requests, stops;
  for (const idle_point &p : points) {
    const std::string slots = fmt::format("{} slot{}", p.slots, p.slots == 1 ? "" : "s");
    requests.push_back({slots, &p.request});
    stops.push_back({slots, &p.stop});
  }
  page.add("Time of one request", latency_table(requests));
  page.add("Time of a stop", latency_table(stops));
  const std::vector<plotted_latency> ends{requests.front(), requests.back()};
  page.add("Percentiles of a request, fewest and most slots", percentile_plot(ends));
  return page.text(report);
}

} // namespace

int run_bench_idle(const bench_options &options, const output &out) {
  const bench_options o = effective(options);
  std::vector<std::uint32_t> slots;
  std::vector<std::string> names;
  for (std::uint32_t n = 1; n <= kMaxSlots; n *= 4) {
    slots.push_back(n);
    names.push_back(fmt::format("slots{}.request", n));
    names.push_back(fmt::format("slots{}.stop", n));
  }
  out.open_hgrm(names);
  const interrupt_guard guard;
  std::vector<idle_point> points;
  {
    const std::uint64_t rounds = o.rounds + std::uint64_t{1}; // with warm-up
    progress display({"idle", "repetitions", slots.size() * rounds});
    for (std::size_t k = 0; k < slots.size() && (k == 0 || !guard.interrupted()); ++k)
      points.push_back(measure(slots[k], o, display, k * rounds));
  }
  print(out, o, points);
  json j = {
      {"method",
       {{"what", "host path, one v2 handler, wait policy spin then yield, threads not pinned: time from the signal of "
                 "one request to its answer, and time of cudaq_dispatcher_stop, each after some idleness"},
        {"idle_ms", kIdleness.count()},
        {"rounds", o.rounds},
        {"quick", o.quick}}}};
  j["points"] = json::array();
  std::uint64_t repetitions = 0;
  for (const idle_point &p : points) {
    repetitions += p.stop.count();
    j["points"].push_back(
        {{"slots", p.slots}, {"request_ns", latency_json(p.request)}, {"stop_ns", latency_json(p.stop)}});
    out.write_hgrm(fmt::format("slots{}.request", p.slots), p.request);
    out.write_hgrm(fmt::format("slots{}.stop", p.slots), p.stop);
  }
  return out.finish(std::move(j), "", kExitCheckFailed,
                    ended(guard.interrupted(), repetitions, slots.size() * o.rounds, "repetitions"),
                    [&](const json &all) { return idle_html(all, points); });
}

} // namespace cudaq::realtime::tools
