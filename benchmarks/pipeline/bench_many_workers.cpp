// SPDX-License-Identifier: Apache-2.0
// How many launches per second a pipeline makes whose workers launch their graphs themselves, and how many the
// driver allows.
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

namespace cudaq::realtime::tools {
namespace {

namespace gpu = cudaq::qec::realtime::gpu;

constexpr int kMaxWorkers = 64;
constexpr std::size_t kBytes = 8, kSlotBytes = 256;

/// A graph of one kernel of one warp, with its stage. It reads 8 bytes in mapped memory, writes them there, and sets
/// its flag.
class small_graph {
public:
  explicit small_graph(int device)
      : stage_({.device_id = device, .input_bytes = kBytes, .input_memory = CUDAQ_MEMORY_MAPPED}), output_(kBytes),
        flag_(sizeof(int)) {
    gpu::require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    const auto captured = capture_graph(graph_, [&](cudaStream_t stream) {
      return launch_word_and_signal(static_cast<const std::uint64_t *>(stage_.input()), output_.device<std::uint64_t>(),
                                    flag_.device<int>(), stream);
    });
    if (!captured)
      throw std::runtime_error(captured.text);
    flag().store(0); // the warm-up run has set it
  }
  ~small_graph() { cudaStreamDestroy(stream_); }
  small_graph(const small_graph &) = delete;
  small_graph &operator=(const small_graph &) = delete;

  pipe::gpu_worker_resources resources() {
    pipe::gpu_worker_resources r;
    r.graph_exec = graph_.exec();
    r.stream = stream_;
    r.function_id = kBenchPipelineFunction;
    r.gpu_output = output_.host<void>();
    r.gpu_output_size = kBytes;
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
  std::atomic_ref<int> flag() { return std::atomic_ref(*flag_.host<int>()); }

  gpu::graph_stage stage_;
  gpu::mapped_block output_, flag_;
  cudaStream_t stream_ = nullptr;
  captured_graph graph_;
};

/// Keeps graphs `first` to `first + count - 1` busy until `launches` of them have ended. `shares_core`: there are more
/// such threads than cores.
void keep_busy(std::deque<small_graph> &graphs, std::size_t first, std::size_t count, std::uint64_t launches,
               bool shares_core, const bench_options &o) {
  std::uint64_t sent = 0, ended = 0, since = now_ns();
  std::vector<bool> is_busy(count);
  for (std::size_t k = 0; ended != launches; k = k + 1 == count ? 0 : k + 1) {
    if (is_busy[k]) {
      if (!graphs[first + k].ended()) {
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
    graphs[first + k].launch();
    is_busy[k] = true;
    ++sent;
  }
}

/// Returns nanoseconds. `threads` divides the number of graphs and `launches`.
std::uint64_t bare_launches(std::deque<small_graph> &graphs, std::size_t threads, std::uint64_t launches,
                            const bench_options &o) {
  const std::size_t each = graphs.size() / threads;
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
        keep_busy(graphs, t * each, each, launches / threads, shares_core, o);
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
  std::deque<small_graph> graphs;
  for (int id = 0; id < kMaxWorkers; ++id)
    graphs.emplace_back(o.gpu);
  for (const std::size_t threads : {1U, 2U, 4U, 8U, 64U}) {
    bare_launches(graphs, threads, warm_up, o);
    figures.add_rate("many-workers-bare-rate",
                     fmt::format("bare, 64 streams, {} threads: as fast as possible", threads), n,
                     bare_launches(graphs, threads, n, o));
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

} // namespace cudaq::realtime::tools
