// SPDX-License-Identifier: Apache-2.0
// How many launches per second a pipeline makes whose workers launch their graphs themselves, and how many the
// driver allows; and the rate of a kernel of 70 us, with one and with two buffers for each worker.
#include "benchmarks/pipeline/bench_pipeline_cases.h"
#include "benchmarks/pipeline/bench_pipeline_kernels.h"
#include "tools/common/machine.h"

#include "kernels/qec/device_memory.h"

#include "cudaq/qec/realtime/graph_stage.h"
#include "cudaq/realtime/daemon/dispatcher/graph_capture.h"

#include <algorithm>
#include <barrier>
#include <deque>
#include <exception>
#include <thread>
#include <tuple>
#include <vector>

namespace cudaq::realtime::tools {
namespace {

namespace gpu = cudaq::qec::realtime::gpu;

constexpr int kMaxWorkers = 64;
constexpr std::size_t kBytes = 8, kSlotBytes = 256;

/// The streams of workers. The buffers of a worker are on one stream, so their graphs run one after the other.
class streams {
public:
  explicit streams(int n) {
    for (int id = 0; id < n; ++id)
      gpu::require(cudaStreamCreateWithFlags(&all_.emplace_back(), cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  ~streams() {
    for (cudaStream_t stream : all_)
      cudaStreamDestroy(stream);
  }
  streams(const streams &) = delete;
  streams &operator=(const streams &) = delete;
  [[nodiscard]] cudaStream_t of_buffer(std::size_t id) const { return all_[id % all_.size()]; }

private:
  std::vector<cudaStream_t> all_;
};

/// A graph of one kernel of one block, with its stage. It reads the input that the stage writes, writes it to mapped
/// memory, and sets its flag.
class small_graph {
public:
  /// 8 B of mapped memory, by one warp.
  small_graph(int device, cudaStream_t stream)
      : small_graph(device, kBytes, CUDAQ_MEMORY_MAPPED, stream, [&](cudaStream_t captured) {
          return launch_word_and_signal(static_cast<const std::uint64_t *>(stage_.input()),
                                        output_.device<std::uint64_t>(), flag_.device<int>(), captured);
        }) {}
  /// After 70 us. bytes: a multiple of 8.
  small_graph(int device, std::size_t bytes, cudaStream_t stream)
      : small_graph(device, bytes, CUDAQ_MEMORY_AUTO, stream, [&](cudaStream_t captured) {
          return launch_busy_copy_and_signal(kBusyNs, stage_.input(), output_.device<void>(), bytes,
                                             flag_.device<int>(), captured);
        }) {}
  small_graph(const small_graph &) = delete;
  small_graph &operator=(const small_graph &) = delete;

  pipe::gpu_worker_resources resources() {
    pipe::gpu_worker_resources r;
    r.graph_exec = graph_.exec();
    r.stream = stream_;
    r.function_id = kBenchPipelineFunction;
    r.gpu_output = output_.host<void>();
    r.gpu_output_size = bytes_;
    r.ready_flag = flag_.host<volatile int>();
    return stage_.resources(r);
  }
  void launch() { gpu::require(cudaGraphLaunch(graph_.exec(), stream_), "cudaGraphLaunch"); }
  bool ended() {
    if (flag().load(std::memory_order_acquire) != 1)
      return false;
    flag().store(0, std::memory_order_relaxed);
    return true;
  }

private:
  template <class Launch>
  small_graph(int device, std::size_t bytes, cudaq_memory_kind_t input, cudaStream_t stream, Launch &&launch)
      : bytes_(bytes), stage_({.device_id = device, .input_bytes = bytes, .input_memory = input}), output_(bytes),
        flag_(sizeof(int)), stream_(stream) {
    const auto captured = capture_graph(graph_, launch);
    if (!captured)
      throw std::runtime_error(captured.text);
    flag().store(0); // the warm-up run has set it
  }
  std::atomic_ref<int> flag() { return std::atomic_ref(*flag_.host<int>()); }

  std::size_t bytes_;
  gpu::graph_stage stage_;
  gpu::mapped_block output_, flag_;
  cudaStream_t stream_;
  captured_graph graph_;
};

/// Keeps `count` graphs busy, each `step` after the one before it, until `launches` of them have ended. `shares_core`:
/// there are more such threads than cores.
void keep_busy(std::deque<small_graph> &graphs, std::size_t first, std::size_t step, std::size_t count,
               std::uint64_t launches, bool shares_core, const bench_options &o) {
  std::uint64_t sent = 0, ended = 0, since = now_ns();
  std::vector<bool> is_busy(count);
  for (std::size_t k = 0; ended != launches; k = k + 1 == count ? 0 : k + 1) {
    if (is_busy[k]) {
      if (!graphs[first + k * step].ended()) {
        if (k != 0)
          continue;
        if (static_cast<double>(now_ns() - since) > o.timeout_s * 1e9)
          throw check_failed("FAILED: a graph does not signal");
        if (shares_core)
          std::this_thread::yield();
        continue;
      }
      is_busy[k] = false;
      ++ended;
      since = now_ns();
    }
    if (sent == launches)
      continue;
    graphs[first + k * step].launch();
    is_busy[k] = true;
    ++sent;
  }
}

/// Returns nanoseconds. Each thread launches `each` graphs. `threads` divides `launches`.
std::uint64_t bare_launches(std::deque<small_graph> &graphs, std::size_t threads, std::size_t each,
                            std::uint64_t launches, const bench_options &o) {
  const bool shares_core = threads > allowed_cores().size();
  std::vector<std::exception_ptr> errors(threads);
  std::vector<std::thread> running;
  std::uint64_t begin = 0;
  std::barrier start(static_cast<std::ptrdiff_t>(threads), [&begin]() noexcept { begin = now_ns(); });
  for (std::size_t t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      const cudaError_t error = cudaSetDevice(o.gpu);
      start.arrive_and_wait();
      try {
        gpu::require(error, "cudaSetDevice");
        keep_busy(graphs, t, threads, each, launches / threads, shares_core, o);
      } catch (...) {
        errors[t] = std::current_exception();
      }
    });
  for (std::thread &t : running)
    t.join();
  const std::uint64_t ns = now_ns() - begin;
  for (const std::exception_ptr &e : errors)
    if (e)
      std::rethrow_exception(e);
  return ns;
}

} // namespace

void bench_many_workers(const bench_options &o, figure_list &figures) {
  const std::uint64_t warm_up = std::min<std::uint64_t>(2048, (o.exchanges + 63) / 64 * 64),
                      n = (o.exchanges + 63) / 64 * 64;
  const streams its(kMaxWorkers);
  std::deque<small_graph> graphs;
  for (std::size_t id = 0; id < kMaxWorkers; ++id)
    graphs.emplace_back(o.gpu, its.of_buffer(id));
  for (const std::size_t threads : {1U, 2U, 4U, 8U, 64U}) {
    bare_launches(graphs, threads, kMaxWorkers / threads, warm_up, o);
    figures.add_rate("many-workers-bare-rate",
                     fmt::format("bare, 64 streams, {} threads: as fast as possible", threads), n,
                     bare_launches(graphs, threads, kMaxWorkers / threads, n, o));
  }
  for (const int workers : {8, 16, kMaxWorkers}) {
    traffic t(o, workers, kSlotBytes, kBytes);
    t.start([&](int id) { return graphs[static_cast<std::size_t>(id)].resources(); }, &traffic::first_and_last);
    t.run(traffic::drive::full, warm_up);
    figures.add_rate("many-workers-rate", fmt::format("{} workers that launch, 8 B: as fast as possible", workers), n,
                     t.run(traffic::drive::full, n));
    t.stop();
  }
}

void bench_buffers(const bench_options &o, const cudaq::qec::realtime::decoding_config &c, figure_list &figures) {
  const std::uint64_t n = std::max<std::uint64_t>(8, o.exchanges / 4 / 8 * 8),
                      warm_up = std::min<std::uint64_t>(n, 800);
  const std::string what = fmt::format("{}, 70 us kernel on {} streams, input written, ", c.name, kPipelineWorkers);
  const streams its(kPipelineWorkers);
  std::deque<small_graph> graphs;
  for (std::size_t id = 0; id < 2 * kPipelineWorkers; ++id)
    graphs.emplace_back(o.gpu, c.int32_input_bytes(), its.of_buffer(id));
  for (const int buffers : {1, 2}) {
    const char *const word = buffers == 1 ? "-one" : "-two";
    bare_launches(graphs, kPipelineWorkers, static_cast<std::size_t>(buffers), warm_up, o);
    figures.add_fraction(
        fmt::format("kernel-70us-buffers{}-bare-rate", word),
        fmt::format("{}{} launched, a bare thread for each: fraction of streams / 70 us", what, buffers), n,
        bare_launches(graphs, kPipelineWorkers, static_cast<std::size_t>(buffers), n, o));
  }
  for (const auto &[workers, buffers, word] : {std::tuple(kPipelineWorkers, 1, "-one"),
                                               {kPipelineWorkers, 2, "-two"},
                                               {2 * kPipelineWorkers, 1, "-more-workers"}}) {
    traffic t(o, workers, c.slot_size, c.int32_input_bytes(), pipe::ring_memory::mapped, ring_of::pipeline, buffers);
    t.start([&](int id) { return graphs[static_cast<std::size_t>(id)].resources(); }, &traffic::first_and_last);
    const std::string shape =
        fmt::format("{}{} workers of {} buffer{}", what, workers, buffers, buffers == 1 ? "" : "s");
    t.run(traffic::drive::periodic, warm_up);
    t.run(traffic::drive::periodic, n);
    figures.add(fmt::format("kernel-70us-buffers{}-latency", word), shape + ": every 30 us, p50 without the kernel",
                t.latency, 0, static_cast<double>(kBusyNs));
    figures.add_fraction(fmt::format("kernel-70us-buffers{}-rate", word), shape + ": fraction of streams / 70 us", n,
                         t.run(traffic::drive::full, n));
    t.stop();
  }
}

} // namespace cudaq::realtime::tools
