// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/common/bench_plan.h"

#include <algorithm>
#include <fmt/format.h>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint64_t kMaxWarmUp = 2048;

constexpr char kFrame4096[] = "one block of 256 threads: flag, 4096 B in and out, 16 B per thread";
constexpr char kFrame4096InGpu[] = "the same memory, one block of 256 threads: flag, 4096 B in and out";
constexpr bench_case kCases[] = {
    {"echo-8B", "regular 1x32, mapped ring, 8 B echo, closed loop", "one warp: flag, 64 B slot in and out, clear", "ns",
     bench_metric::p50_ratio},
    {"regular-4K-add-words", "regular 1x256, 4096 B, one thread adds 1 to each word", kFrame4096, "ns",
     bench_metric::p50_ratio},
    {"regular-4K-last-word", "regular 1x256, 4096 B, first word read, last written", kFrame4096, "ns",
     bench_metric::p50_ratio},
    {"regular-4K-add-words-batched", "regular 1x256, 4096 B, the same 16 words at a time", kFrame4096, "ns",
     bench_metric::p50_ratio},
    {"cooperative-4K-1-block", "cooperative 1x128, 4096 B, all threads add 1 to each byte", kFrame4096, "ns",
     bench_metric::p50_ratio},
    {"cooperative-4K-16-blocks", "cooperative 16x128, 4096 B, the same", kFrame4096, "ns", bench_metric::p50_ratio},
    {"fifo-64", "regular 1x32, FIFO, 64 in flight, 8 B echo", "one warp, the same ring in order, full", "ns",
     bench_metric::rate},
    {"fifo-64-one-thread", "the same, one client thread", "one warp, the same ring in order, full, the same client",
     "ns", bench_metric::rate},
    {"fifo-64-user", "as a user's client: slots of 8192 B, one thread sends and collects one by one",
     "one warp, the same ring in order, full, the same client", "ns", bench_metric::rate},
    {"any-256", "regular 8x32, ANY order, 256 slots, 8 B echo", "8x32, one lane per slot, 32 B in and out", "ns",
     bench_metric::rate_ratio},
    {"device-ring-8B", "regular 1x32, ring in device memory, GPU producer, 8 B echo",
     "device flag, slot read, flag back", "cycles", bench_metric::p50_ratio},
    {"device-ring-user", "the same as a user writes it: slots of 4096 B, no promise about peers",
     "flag, slot read, answer frame, flag back, at system scope", "cycles", bench_metric::p50_ratio},
    {"gpu-memory-echo-8B", "regular 1x32, requests in GPU memory, 8 B echo, closed loop",
     "one warp: flag, 64 B slot in and out, clear; the same memory", "ns", bench_metric::p50_ratio},
    {"gpu-memory-fifo-64", "the same, FIFO, 64 in flight", "one warp, the same ring in order, full", "ns",
     bench_metric::rate},
    {"gpu-memory-fifo-64-batches", "the same, requests signalled by up to 32", "one warp, the same ring in order, full",
     "ns", bench_metric::rate},
    {"gpu-memory-fifo-64-one-thread", "the same, one client thread",
     "one warp, the same ring in order, full, the same client", "ns", bench_metric::rate},
    {"gpu-memory-fifo-64-user", "as a user's client: slots of 8192 B, one thread sends and collects one by one",
     "one warp, the same ring in order, full, the same client", "ns", bench_metric::rate},
    {"gpu-memory-cooperative-4K", "cooperative 1x128, requests in GPU memory, 4096 B, all threads add 1 to each byte",
     kFrame4096InGpu, "ns", bench_metric::p50_ratio},
    {"gpu-memory-last-word-4K", "regular 1x256, requests in GPU memory, 4096 B, first word read, last written",
     kFrame4096InGpu, "ns", bench_metric::p50_ratio},
    {"idle-poll", "idle: regular 1x32, mapped ring, time of an empty poll", "one warp that polls one flag", "ns",
     bench_metric::p50_ratio},
};

constexpr char kGraphAndWrite[] = "cudaGraphLaunch, stream write -> seen";
constexpr char kMinimalScheduler[] = "device flag, 32 B read, launch, 32 B and the child's flag";
constexpr char kMinimalSchedulerInGpu[] = "the same, flag and request in GPU memory";
constexpr bench_case kGraphCases[] = {
    {"worker-8B", "graph worker, library publishes, 8 B echo, closed loop", kGraphAndWrite, "ns",
     bench_metric::p50_ratio},
    {"worker-publishing-8B", "graph worker, graph publishes, 8 B echo, closed loop",
     "cudaGraphLaunch, the graph's own flag -> seen", "ns", bench_metric::p50_ratio},
    {"worker-copied-4K", "graph worker, 4096 B copied by the DMA hook, closed loop",
     "copy, cudaGraphLaunch, stream write -> seen", "ns", bench_metric::p50_ratio},
    {"scheduler-8B", "graph launched by a scheduler on the GPU, forwarded, 8 B echo, closed loop", kMinimalScheduler,
     "ns", bench_metric::p50_ratio},
    {"scheduler-publishing-8B", "the same, the graph publishes", kMinimalScheduler, "ns", bench_metric::p50_ratio},
    {"scheduler-gpu-memory-8B", "scheduler-8B with requests in GPU memory", kMinimalSchedulerInGpu, "ns",
     bench_metric::p50_ratio},
    {"scheduler-gpu-memory-publishing-8B", "scheduler-publishing-8B with requests in GPU memory",
     kMinimalSchedulerInGpu, "ns", bench_metric::p50_ratio},
    {"workers-64", "64 graph workers, as fast as possible, 8 B echo", "one thread, 64 streams", "ns",
     bench_metric::rate},
    {"workers-8-of-70us", "8 graph workers of 70 us, as fast as possible", "one thread, 8 streams", "ns",
     bench_metric::rate},
};
constexpr const char *kPipelineCases[] = {"passthrough-latency",
                                          "passthrough-rate",
                                          "kernel-70us-latency",
                                          "kernel-70us-rate",
                                          "kernel-70us-buffers",
                                          "local-latency",
                                          "local-rate",
                                          "many-workers",
                                          "decode-stage",
                                          "staging",
                                          "staging-buffers",
                                          "two-streams",
                                          "resident",
                                          "learned-shot",
                                          "learned-rate",
                                          "learned-pipeline",
                                          "relay-bp",
                                          "host-predecoder"};

void refuse_unknown(const std::vector<std::string> &names, const std::vector<const char *> &known) {
  for (const std::string &name : names)
    if (std::ranges::none_of(known, [&](const char *one) { return names_case(name, one); }))
      throw usage_error(fmt::format("--cases: unknown case \"{}\"; the cases are {}", name, fmt::join(known, ", ")));
}

} // namespace

std::span<const bench_case> all_bench_cases() { return kCases; }
std::span<const bench_case> all_graph_cases() { return kGraphCases; }

bool names_case(std::string_view given, std::string_view name) {
  return name.starts_with(given) && (name.size() == given.size() || name[given.size()] == '-');
}

std::vector<bench_case> select_cases(const std::vector<std::string> &names, std::span<const bench_case> all) {
  std::vector<const char *> known;
  for (const bench_case &c : all)
    known.push_back(c.name);
  refuse_unknown(names, known);
  std::vector<bench_case> chosen;
  for (const bench_case &c : all)
    if (names.empty() ||
        std::ranges::any_of(names, [&](const std::string &given) { return names_case(given, c.name); }))
      chosen.push_back(c);
  return chosen;
}

round_size size_of_round(const bench_options &options, std::uint32_t slots) {
  round_size size;
  size.exchanges = (options.exchanges + options.rounds - 1) / options.rounds;
  size.warm_up = std::min(kMaxWarmUp, size.exchanges);
  size.warm_up += (slots - (size.exchanges + size.warm_up) % slots) % slots;
  return size;
}

void check_pipeline_cases(const std::vector<std::string> &names) {
  refuse_unknown(names, {std::begin(kPipelineCases), std::end(kPipelineCases)});
}

} // namespace cudaq::realtime::tools
