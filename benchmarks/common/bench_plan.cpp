// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/common/bench_plan.h"

#include <algorithm>
#include <fmt/format.h>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint64_t kMostWarmUp = 2048;

constexpr char kFrame4096[] = "one block of 256 threads: flag, 4096 B in and out, 16 B per thread";
constexpr char kFrame4096InGpu[] = "the same memory, one block of 256 threads: flag, 4096 B in and out";
constexpr bench_case kCases[] = {
    {"P1", "P1", "regular 1x32, mapped ring, 8 B echo, closed loop", "one warp: flag, 64 B slot in and out, clear",
     "ns", bench_metric::p50_ratio, 1.10, 0.97},
    {"P2a", "P2", "regular 1x256, 4096 B, one thread adds 1 to each word", kFrame4096, "ns", bench_metric::p50_ratio, 6,
     4},
    {"P2b", "P2", "regular 1x256, 4096 B, first word read, last written", kFrame4096, "ns", bench_metric::p50_ratio,
     1.5, 1.2},
    {"P2c", "P2", "regular 1x256, 4096 B, the same 16 words at a time", kFrame4096, "ns", bench_metric::p50_ratio, 6,
     4},
    {"P3a", "P3", "cooperative 1x128, 4096 B, all threads add 1 to each byte", kFrame4096, "ns",
     bench_metric::p50_ratio, 2.0, 1.3},
    {"P3b", "P3", "cooperative 16x128, 4096 B, the same", kFrame4096, "ns", bench_metric::p50_ratio, 2.0, 1.3},
    {"P4", "P4", "regular 1x32, FIFO, 64 in flight, 8 B echo", "one warp, the same ring in order, full", "ns",
     bench_metric::rate, 600e3, 2e6},
    {"P5", "P5", "regular 8x32, ANY order, 256 slots, 8 B echo", "8x32, one lane per slot, 32 B in and out", "ns",
     bench_metric::rate_ratio, 0.33, 0.8},
    {"P6", "P6", "regular 1x32, ring in device memory, GPU producer, 8 B echo", "device flag, slot read, flag back",
     "cycles", bench_metric::p50_ratio, 1.5, 1.1},
    {"P15a", "P15", "regular 1x32, requests in GPU memory, 8 B echo, closed loop",
     "one warp: flag, 64 B slot in and out, clear; the same memory", "ns", bench_metric::p50_ratio, 1.15, 1.0},
    {"P15b", "P15", "the same, FIFO, 64 in flight", "one warp, the same ring in order, full", "ns", bench_metric::rate,
     1.5e6, 3e6},
    {"P16a", "P16", "cooperative 1x128, requests in GPU memory, 4096 B, all threads add 1 to each byte",
     kFrame4096InGpu, "ns", bench_metric::p50_ratio, 1.5, 1.2},
    {"P16b", "P16", "regular 1x256, requests in GPU memory, 4096 B, first word read, last written", kFrame4096InGpu,
     "ns", bench_metric::p50_ratio, 1.5, 1.2},
    {"P14", "P14", "idle: regular 1x32, mapped ring, time of an empty poll", "one warp that polls one flag", "ns",
     bench_metric::p50_ratio, 0, 0},
};

constexpr double kSerialGood = 1e9 / 3000, kSerialAim = 1e9 / 2000; ///< 3 and 2 us of the dispatcher per request
constexpr double kBusyWorkers = 8 / 70e-6;                          ///< upper limit of eight workers of 70 us
constexpr bench_case kGraphCases[] = {
    {"P7a", "P7", "graph worker, library publishes, 8 B echo, closed loop", "cudaGraphLaunch, stream write -> seen",
     "ns", bench_metric::p50_ratio, 1.15, 1.05},
    {"P7b", "P7", "graph worker, graph publishes, 8 B echo, closed loop",
     "cudaGraphLaunch, the graph's own flag -> seen", "ns", bench_metric::p50_ratio, 1.15, 1.05},
    {"P7c", "P7", "graph worker, 4096 B copied by the DMA hook, closed loop",
     "copy, cudaGraphLaunch, stream write -> seen", "ns", bench_metric::p50_ratio, 1.15, 1.05},
    {"P8a", "P8", "graph launched by a scheduler on the GPU, forwarded, 8 B echo, closed loop",
     "device flag, 32 B read, launch, 32 B and the child's flag", "ns", bench_metric::p50_ratio, 1.15, 1.05},
    {"P8b", "P8", "the same, the graph publishes", "device flag, 32 B read, launch, 32 B and the child's flag", "ns",
     bench_metric::p50_ratio, 1.15, 1.05},
    {"P8c", "P8", "P8a with requests in GPU memory", "the same, flag and request in GPU memory", "ns",
     bench_metric::p50_ratio, 1.15, 1.05},
    {"P8d", "P8", "P8b with requests in GPU memory", "the same, flag and request in GPU memory", "ns",
     bench_metric::p50_ratio, 1.15, 1.05},
    {"P12c", "P12", "64 graph workers, as fast as possible, 8 B echo", "one thread, 64 streams", "ns",
     bench_metric::rate, kSerialGood, kSerialAim},
    {"P12d", "P12", "8 graph workers of 70 us, as fast as possible", "one thread, 8 streams", "ns", bench_metric::rate,
     0.95 * kBusyWorkers, 0.99 * kBusyWorkers},
};

void refuse_unknown(const std::vector<std::string> &names, const std::vector<std::string> &known) {
  for (const std::string &name : names)
    if (std::ranges::find(known, name) == known.end())
      throw usage_error(fmt::format("--cases: unknown case \"{}\"; the cases are {}", name, fmt::join(known, ", ")));
}

} // namespace

std::span<const bench_case> all_bench_cases() { return kCases; }
std::span<const bench_case> all_graph_cases() { return kGraphCases; }

std::vector<bench_case> select_cases(const std::vector<std::string> &names, std::span<const bench_case> all) {
  std::vector<std::string> known;
  for (const bench_case &c : all)
    for (const char *name : {c.group, c.id})
      if (std::ranges::find(known, name) == known.end())
        known.emplace_back(name);
  refuse_unknown(names, known);
  std::vector<bench_case> chosen;
  for (const bench_case &c : all)
    if (names.empty() || std::ranges::find(names, c.id) != names.end() ||
        std::ranges::find(names, c.group) != names.end())
      chosen.push_back(c);
  return chosen;
}

round_size size_of_round(const bench_options &options, std::uint32_t slots) {
  round_size size;
  size.exchanges = (options.exchanges + options.rounds - 1) / options.rounds;
  size.warm_up = std::min(kMostWarmUp, size.exchanges);
  size.warm_up += (slots - (size.exchanges + size.warm_up) % slots) % slots;
  return size;
}

void check_pipeline_cases(const std::vector<std::string> &names) {
  refuse_unknown(names,
                 {"P11", "P11a", "P11b", "P11c", "P12", "P12a", "P12b", "P12e", "P12f", "P13", "P17", "P18", "P18c"});
}

} // namespace cudaq::realtime::tools
