// SPDX-License-Identifier: Apache-2.0
// learned: one shot through the learned predecoder's kernels, as a graph that a thread launches, and waits for.
#include "benchmarks/pipeline/bench_pipeline_cases.h"
#include "benchmarks/pipeline/memory_text.h"

#include "kernels/qec/learned/learned_engine.h"
#include "kernels/qec/request_memory.h"
#include "tools/shots/sampled_shots.h"

#include "cudaq/realtime/daemon/dispatcher/graph_capture.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

namespace cudaq::realtime::tools {
namespace {

namespace gpu = cudaq::qec::realtime::gpu;
namespace qec = cudaq::qec::realtime;

constexpr std::uint64_t kSampledShots = 256;
constexpr std::uint64_t kInARow = 200; ///< graphs that are launched one after another, without waiting

/// A shot's graph, with its input and output in mapped memory.
class launched_shot {
public:
  launched_shot(std::shared_ptr<const gpu::device_network> network, bool overlap)
      : network_(std::move(network)), memory_(network_->job()), stream_("learned"),
        events_(words() * sizeof(std::uint64_t)), output_(network_->job().layout.bytes()) {
    gpu::network_shot shot = memory_.shot();
    shot.payload = events_.device<std::uint64_t>();
    shot.output = output_.device<std::uint8_t>();
    const auto made = cudaq::realtime::capture_graph(
        graph_, [&](cudaStream_t stream) { return gpu::launch_network(network_->job(), shot, overlap, stream); });
    if (!made)
      throw std::runtime_error(made.text);
  }
  void set_events(std::span<const std::uint8_t> row) {
    std::fill_n(events_.host<std::uint64_t>(), words(), 0);
    std::ranges::copy(row, events_.host<std::uint8_t>());
  }
  /// Nanoseconds from the first launch to the end of the last one.
  std::uint64_t run(std::uint64_t graphs, double timeout_s) {
    const std::uint64_t begin = now_ns();
    for (std::uint64_t k = 0; k < graphs; ++k)
      gpu::require(cudaGraphLaunch(graph_.exec(), stream_.get()), "cudaGraphLaunch");
    cudaError_t state = cudaErrorNotReady;
    if (!gpu::spin_until(static_cast<std::uint64_t>(timeout_s * 1e9),
                         [&] { return (state = cudaStreamQuery(stream_.get())) != cudaErrorNotReady; }))
      throw check_failed("FAILED: a graph of the learned predecoder does not end");
    gpu::require(state, "a graph of the learned predecoder");
    if (output_.host<qec::predecoder_header>()->status != 0)
      throw check_failed("FAILED: the learned predecoder refuses a sampled shot");
    return now_ns() - begin;
  }
  [[nodiscard]] const qec::predecoder_header &header() const { return *output_.host<qec::predecoder_header>(); }

private:
  [[nodiscard]] std::size_t words() const { return network_->job().layout.dense_words(); }

  std::shared_ptr<const gpu::device_network> network_;
  gpu::network_memory memory_;
  gpu::own_stream stream_;
  gpu::mapped_block events_, output_;
  captured_graph graph_;
};

/// What this GPU needs at least, in us: the products at the dense rate of its tensor cores, or weights and values over
/// the rate of its memory.
struct least_times {
  double products_us, memory_us;
};
least_times least_times_of(const gpu::network_job &job, int device) {
  const auto attribute = [&](cudaDeviceAttr which) {
    int value = 0;
    gpu::require(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
    return static_cast<double>(value);
  };
  constexpr double kPerCycle = 2048; // float16 products and additions of a multiprocessor of Hopper
  const double cells = job.grid.cells(), products = cells * (job.middles * double{gpu::kMiddleWeights});
  const double bytes = 2.0 * (job.middles * double{gpu::kMiddleWeights} + gpu::kHeadWeights) +
                       2.0 * cells * gpu::kNetworkChannels * 2 * (job.middles + 1);
  const double per_us =
      attribute(cudaDevAttrMultiProcessorCount) * kPerCycle * attribute(cudaDevAttrClockRate) / 1000; // kHz
  const double bytes_per_us =
      2 * attribute(cudaDevAttrMemoryClockRate) / 1000 * attribute(cudaDevAttrGlobalMemoryBusWidth) / 8;
  return {products / per_us, bytes / bytes_per_us};
}

struct shape {
  const char *name;
  std::uint32_t distance, rounds;
};

void bench_shape(const bench_options &o, const shape &s, const std::string &weights, figure_list &figures,
                 std::vector<std::string> &skipped) {
  const std::string text = memory_text(s.distance, s.rounds, 0.006).text();
  const qec::shot_set set = sample_shots(s.name, text, kSampledShots, o.seed);
  std::shared_ptr<const gpu::device_network> network;
  try {
    network = gpu::load_device_network(weights, qec::decoder_model(text));
  } catch (const std::runtime_error &refused) { // an older GPU
    skipped.push_back(fmt::format("learned, {}: {}", s.name, refused.what()));
    return;
  }
  const gpu::layer_plan plan = network->job().plan;
  const std::uint64_t shots = std::min<std::uint64_t>(o.exchanges, 2000);
  struct measured {
    latency_histogram shot;
    double in_a_row_us = 0;
    std::uint64_t left = 0, events = 0;
  };
  const auto measure = [&](bool overlap, bool with_events) {
    launched_shot launched(network, overlap);
    measured m;
    const std::vector<std::uint8_t> none(set.detection_bytes());
    const auto row = [&](std::uint64_t k) {
      return with_events ? set.detection_row(k % set.shots) : std::span<const std::uint8_t>(none);
    };
    for (std::uint64_t k = 0; k < 50 + shots; ++k) {
      launched.set_events(row(k));
      const std::uint64_t ns = launched.run(1, o.timeout_s);
      m.left += launched.header().num_events;
      m.events += launched.header().input_events;
      if (k >= 50)
        m.shot.record(ns);
    }
    std::uint64_t least = UINT64_MAX;
    for (int k = 0; k < 5; ++k)
      least = std::min(least, launched.run(kInARow, o.timeout_s));
    m.in_a_row_us = static_cast<double>(least) / 1000 / kInARow;
    return m;
  };
  const least_times bound = least_times_of(network->job(), o.gpu);
  const std::string grid = fmt::format("{}, {} cells, {} x {} blocks of {} cells", s.name, network->job().grid.cells(),
                                       plan.clusters, plan.parts, plan.cells());
  for (const bool overlap : {true, false}) {
    const measured idle = measure(overlap, false), full = measure(overlap, true);
    const std::string how = fmt::format("{}, kernels {}", grid, overlap ? "overlap" : "after one another");
    const double floor_us = static_cast<double>(idle.shot.percentile(50)) / 1000;
    figures.add("learned-idle", how + ": a shot without events, in which no layer computes", idle.shot);
    figures.add(
        "learned-shot",
        fmt::format("{}; least {:.1f} us of products, {:.1f} us of memory; p99 {:.1f}; {:.3f} of the events left", how,
                    bound.products_us, bound.memory_us, static_cast<double>(full.shot.percentile(99)) / 1000,
                    static_cast<double>(full.left) / static_cast<double>(std::max<std::uint64_t>(full.events, 1))),
        full.shot, floor_us + std::max(bound.products_us, bound.memory_us));
    figures.add_difference("learned-in-a-row", how + ": without waiting between shots", full.in_a_row_us);
    figures.add_difference("learned-idle-in-a-row", how + ": the same without events", idle.in_a_row_us);
  }
}

} // namespace

void bench_learned(const bench_options &o, const std::string &weights, figure_list &figures,
                   std::vector<std::string> &skipped) {
  for (const shape &s : {shape{"d7 T7", 7, 7}, {"d13 T13", 13, 13}, {"d13 T104", 13, 104}, {"d21 T21", 21, 21}})
    bench_shape(o, s, weights, figures, skipped);
}

} // namespace cudaq::realtime::tools
