// SPDX-License-Identifier: Apache-2.0
// Prints what measure_device_graphs finds; not installed.
// usage: bench-device-graph [exchanges [schedulers [own-streams]]]
#include "bench_device_graph.h"

#include <cstdio>
#include <cstdlib>
#include <exception>

int main(int argc, char **argv) {
  using namespace cudaq::realtime::tools;
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); // for schedulers with a stream each
  device_graph_plan plan;
  if (argc > 1)
    plan.exchanges = std::strtoull(argv[1], nullptr, 10);
  if (argc > 2)
    plan.schedulers = static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10));
  plan.own_streams = argc > 3 && std::atoi(argv[3]) != 0;
  try {
    const auto cases = measure_device_graphs(plan);
    std::printf("%-50s %8s %8s %8s %8s %8s %8s %6s %6s\n", "case, ns", "min", "p50", "p99", "p99.9", "p99.99", "max",
                "ratio", "wrong");
    for (const device_graph_case &c : cases) {
      const auto p = [&](double percent) { return static_cast<unsigned long long>(c.ns.percentile(percent)); };
      const double ratio = c.floor < 0
                               ? 1.0
                               : static_cast<double>(c.ns.percentile(50)) /
                                     static_cast<double>(cases[static_cast<std::size_t>(c.floor)].ns.percentile(50));
      std::printf("%-50s %8llu %8llu %8llu %8llu %8llu %8llu %6.3f %6llu\n", c.name.c_str(),
                  static_cast<unsigned long long>(c.ns.min()), p(50), p(99), p(99.9), p(99.99),
                  static_cast<unsigned long long>(c.ns.max()), ratio, static_cast<unsigned long long>(c.wrong));
    }
    return 0;
  } catch (const std::exception &failed) {
    std::fprintf(stderr, "bench-device-graph: %s\n", failed.what());
    std::_Exit(1); // kernels may still run
  }
}
