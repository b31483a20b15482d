// SPDX-License-Identifier: Apache-2.0
// learned-shot: one shot through the learned predecoder's kernels, as a graph that a thread launches, and waits for.
// learned-rate: many such graphs at a time. learned-pipeline: requests through the pipeline, to their corrections.
#include "benchmarks/pipeline/bench_pipeline_cases.h"
#include "benchmarks/pipeline/memory_text.h"

#include "kernels/qec/learned/learned_worker.h"
#include "kernels/qec/request_memory.h"
#include "lib/qec/decoding/learned/learned_predecoder.h"
#include "tools/shots/sampled_shots.h"

#include "cudaq/realtime/daemon/dispatcher/graph_capture.h"

#include <algorithm>
#include <deque>
#include <future>
#include <initializer_list>
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
        graph_, [&](cudaStream_t stream) { return gpu::launch_shot(network_->job(), shot, overlap, stream); });
    if (!made)
      throw std::runtime_error(made.text);
  }
  void set_events(std::span<const std::uint8_t> row) {
    std::fill_n(events_.host<std::uint64_t>(), words(), 0);
    std::ranges::copy(row, events_.host<std::uint8_t>());
  }
  void launch() { gpu::require(cudaGraphLaunch(graph_.exec(), stream_.get()), "cudaGraphLaunch"); }
  /// Until all launched graphs have ended.
  void await(double timeout_s) {
    cudaError_t state = cudaErrorNotReady;
    if (!gpu::spin_until(static_cast<std::uint64_t>(timeout_s * 1e9),
                         [&] { return (state = cudaStreamQuery(stream_.get())) != cudaErrorNotReady; }))
      throw check_failed("FAILED: a graph of the learned predecoder does not end");
    gpu::require(state, "a graph of the learned predecoder");
    if (output_.host<qec::predecoder_header>()->status != 0)
      throw check_failed("FAILED: the learned predecoder refuses a sampled shot");
  }
  /// Nanoseconds from the first launch to the end of the last one.
  std::uint64_t run(std::uint64_t graphs, double timeout_s) {
    const std::uint64_t begin = now_ns();
    for (std::uint64_t k = 0; k < graphs; ++k)
      launch();
    await(timeout_s);
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

/// A memory with its shots, and the network for it.
struct learned_memory {
  learned_memory(const shape &of, double p, const std::string &weights, std::uint64_t seed)
      : name(of.name), text(memory_text(of.distance, of.rounds, p).text()),
        set(sample_shots(of.name, text, kSampledShots, seed)), model(read_or_throw(weights, text)) {}
  /// On the GPU, for so many shots at a time. Throws std::runtime_error: an older GPU.
  [[nodiscard]] std::shared_ptr<const gpu::device_network>
  network(std::uint32_t shots_at_once, gpu::network_form form = gpu::network_form::chain) const {
    return std::make_shared<const gpu::device_network>(model.network, model.lattice, model.layout, shots_at_once, form);
  }
  const std::string name, text;
  const qec::shot_set set;
  const qec::learned_model model;

private:
  static qec::learned_model read_or_throw(const std::string &weights, const std::string &dem) {
    auto read = qec::read_learned_model(weights, qec::decoder_model(dem));
    if (read.failed())
      throw std::runtime_error(read.text());
    return std::move(*read);
  }
};

std::string blocks_text(const gpu::network_job &job) {
  if (job.fused.rows != 0)
    return fmt::format("fused, {} x {} blocks of {} rows", job.fused.row_blocks, job.fused.beside(), job.fused.rows);
  return fmt::format("{} x {} blocks of {} rows", job.plan.clusters, job.plan.parts, job.plan.rows());
}

/// The chain of kernels with and without overlap, or the fused kernel.
void bench_form(const bench_options &o, const learned_memory &memory, gpu::network_form form, figure_list &figures) {
  const qec::shot_set &set = memory.set;
  const auto network = memory.network(1, form);
  const bool is_fused = form == gpu::network_form::fused;
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
  const std::string grid =
      fmt::format("{}, {} cells, {}", memory.name, network->job().grid.cells(), blocks_text(network->job()));
  for (const bool overlap : {true, false}) {
    if (is_fused && !overlap)
      return; // it is one kernel
    const measured idle = measure(overlap, false), full = measure(overlap, true);
    const std::string how =
        is_fused ? grid : fmt::format("{}, kernels {}", grid, overlap ? "overlap" : "after one another");
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

/// The chain of kernels, and the fused kernel if there is one for this GPU and grid.
std::vector<gpu::network_form> forms_of(const learned_memory &memory) {
  try {
    (void)memory.network(1, gpu::network_form::fused);
    return {gpu::network_form::chain, gpu::network_form::fused};
  } catch (const std::runtime_error &) {
    return {gpu::network_form::chain};
  }
}

void bench_shape(const bench_options &o, const learned_memory &memory, figure_list &figures) {
  for (const gpu::network_form form : forms_of(memory))
    bench_form(o, memory, form, figures);
}

/// Shots/s of `streams` graphs. Each of the threads launches on its own streams in turn, and never waits in between.
double shots_per_second(const bench_options &o, const std::shared_ptr<const gpu::device_network> &network,
                        std::size_t streams, std::size_t threads, std::span<const std::uint8_t> row) {
  std::deque<launched_shot> shots;
  for (std::size_t k = 0; k < streams; ++k)
    shots.emplace_back(network, true).set_events(row);
  const auto keep_busy = [&](std::size_t first, std::uint64_t rounds) {
    gpu::require(cudaSetDevice(o.gpu), "cudaSetDevice");
    const std::size_t count = streams / threads;
    for (std::uint64_t round = 0; round < rounds; ++round)
      for (std::size_t k = first; k < first + count; ++k)
        shots[k].launch();
    for (std::size_t k = first; k < first + count; ++k)
      shots[k].await(o.timeout_s);
  };
  const auto run = [&](std::uint64_t rounds) {
    std::vector<std::future<void>> running;
    const std::uint64_t begin = now_ns();
    for (std::size_t t = 0; t < threads; ++t)
      running.push_back(std::async(std::launch::async, keep_busy, t * (streams / threads), rounds));
    for (std::future<void> &one : running)
      one.get();
    return static_cast<double>(streams * rounds) * 1e9 / static_cast<double>(now_ns() - begin);
  };
  (void)run(10); // warm-up
  return run(std::max<std::uint64_t>(20, std::min<std::uint64_t>(o.exchanges, 4000) / streams));
}

/// What the GPU can do, and what its launches allow: the layers of a shot without events do nothing.
void bench_rates(const bench_options &o, const learned_memory &memory, figure_list &figures) {
  const std::vector<std::uint8_t> none(memory.set.detection_bytes());
  std::vector<std::pair<std::uint32_t, gpu::network_form>> plans;
  for (const gpu::network_form form : forms_of(memory))
    for (const std::uint32_t plan : {1U, 4U, 8U, 16U, 32U})
      plans.emplace_back(plan, form);
  for (const auto &[plan, form] : plans) {
    const auto network = memory.network(plan, form);
    for (const std::size_t streams : {std::size_t{1}, std::size_t{8}, std::size_t{32}})
      for (const std::size_t threads : {std::size_t{1}, std::size_t{4}}) {
        if (streams % threads != 0)
          continue;
        const std::string how =
            fmt::format("{}, {}, {} streams, {} threads", memory.name, blocks_text(network->job()), streams, threads);
        figures.add_value("learned-rate", how, "shots/s",
                          shots_per_second(o, network, streams, threads, memory.set.detection_row(0)));
        if (plan == 1)
          figures.add_value("learned-rate-idle", how + ", without events", "shots/s",
                            shots_per_second(o, network, streams, threads, none));
      }
  }
}

/// The whole pipeline: network on the GPU, pymatching on the workers.
void bench_in_pipeline(const bench_options &o, const learned_memory &memory, int workers, std::uint32_t plan,
                       gpu::network_form form, figure_list &figures) {
  const auto network = memory.network(plan, form);
  const std::size_t slot_size =
      (CUDAQ_RPC_HEADER_SIZE + std::max<std::size_t>(memory.set.detection_bytes() + 8, 64) + 63) / 64 * 64;
  struct matching_worker {
    std::unique_ptr<gpu::learned_worker> network;
    std::unique_ptr<qec::decode_stage> matcher;
    std::uint64_t ns = 0, shots = 0;
  };
  std::vector<matching_worker> all;
  for (int id = 0; id < workers; ++id) {
    auto made = qec::make_decoder("pymatching", memory.text);
    if (!made)
      throw std::runtime_error(made.error);
    all.push_back({std::make_unique<gpu::learned_worker>(network, gpu::staging::automatic, slot_size),
                   std::make_unique<qec::decode_stage>(std::move(made.instance))});
  }
  traffic t(o, workers, slot_size, memory.set.detection_bytes());
  t.start(
      [&](int id) {
        matching_worker &one = all[static_cast<std::size_t>(id)];
        return one.network->resources(kBenchPipelineFunction, &one);
      },
      [](const pipe::cpu_stage_context &c) -> std::size_t {
        auto &one = *static_cast<matching_worker *>(c.user_context);
        const std::uint64_t begin = now_ns();
        one.matcher->answer(c.gpu_output, c.response_buffer, c.max_response_size);
        one.ns += now_ns() - begin;
        ++one.shots;
        return pipe::FRAMED_RESPONSE;
      },
      &memory.set);
  const std::uint64_t shots = std::min<std::uint64_t>(o.exchanges, 4000);
  t.run(traffic::drive::one_by_one, std::min<std::uint64_t>(shots, 200));
  t.run(traffic::drive::one_by_one, std::min<std::uint64_t>(shots, 1000));
  const latency_histogram alone = t.latency;
  const std::uint64_t ns = t.run(traffic::drive::full, shots);
  t.stop();
  std::uint64_t matching_ns = 0, matched = 0;
  for (const matching_worker &one : all)
    matching_ns += one.ns, matched += one.shots;
  const std::string how = fmt::format("{}, {} workers, {}", memory.name, workers, blocks_text(network->job()));
  const auto us = [](const latency_histogram &of, double percent) {
    return static_cast<double>(of.percentile(percent)) / 1000;
  };
  figures.add("learned-pipeline-latency",
              fmt::format("{}, one request at a time: p99 {:.1f}, p99.9 {:.1f} us; matching {:.1f} us", how,
                          us(alone, 99), us(alone, 99.9),
                          static_cast<double>(matching_ns) / 1000 / static_cast<double>(matched)),
              alone);
  figures.add_rate(
      "learned-pipeline-rate",
      fmt::format("{}, as fast as possible: p50 {:.0f}, p99 {:.0f} us", how, us(t.latency, 50), us(t.latency, 99)),
      shots, ns);
}

/// An older GPU is no error.
template <class Bench>
void on_memories(const bench_options &o, const std::string &weights, std::initializer_list<shape> shapes, double p,
                 std::vector<std::string> &skipped, const Bench &bench) {
  for (const shape &s : shapes) {
    const learned_memory memory(s, p, weights, o.seed);
    try {
      (void)memory.network(1);
    } catch (const std::runtime_error &refused) {
      skipped.push_back(fmt::format("learned, {}: {}", s.name, refused.what()));
      continue;
    }
    bench(memory);
  }
}

constexpr shape kSmall{"d7 T7", 7, 7}, kMiddle{"d13 T13", 13, 13}, kLong{"d13 T104", 13, 104},
    kLarge{"d21 T21", 21, 21};

} // namespace

void bench_learned_shot(const bench_options &o, const std::string &weights, figure_list &figures,
                        std::vector<std::string> &skipped) {
  on_memories(o, weights, {kSmall, kMiddle, kLong, kLarge}, 0.006, skipped,
              [&](const learned_memory &memory) { bench_shape(o, memory, figures); });
}

void bench_learned_rate(const bench_options &o, const std::string &weights, figure_list &figures,
                        std::vector<std::string> &skipped) {
  on_memories(o, weights, {kSmall, kMiddle, kLarge}, 0.006, skipped,
              [&](const learned_memory &memory) { bench_rates(o, memory, figures); });
}

void bench_learned_pipeline(const bench_options &o, const std::string &weights, figure_list &figures,
                            std::vector<std::string> &skipped) {
  on_memories(o, weights, {kSmall, kMiddle, kLarge}, 0.006, skipped, [&](const learned_memory &memory) {
    const std::vector<gpu::network_form> forms = forms_of(memory); // loads a network, to see
    for (const int workers : {1, 4, 8, 12})
      for (const std::uint32_t plan : {1U, static_cast<std::uint32_t>(workers), 32U})
        for (const gpu::network_form form : forms)
          if (plan == 1 || workers != 1)
            bench_in_pipeline(o, memory, workers, plan, form, figures);
  });
}

} // namespace cudaq::realtime::tools
