// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/pipeline/bench_pipeline_cases.h"
#include "benchmarks/pipeline/bench_pipeline_kernels.h"

#include "kernels/qec/device_memory.h"

#include "cudaq/qec/realtime/graph_stage.h"
#include "cudaq/realtime/daemon/dispatcher/graph_capture.h"

#include <deque>
#include <thread>

namespace cudaq::realtime::tools {
namespace {

namespace gpu = cudaq::qec::realtime::gpu;
namespace qec = cudaq::qec::realtime;

std::uint64_t warm_up_of(const bench_options &o) { return std::min<std::uint64_t>(2000, o.exchanges); }
std::uint64_t exchanges_of(const bench_options &o) { return std::max<std::uint64_t>(8, o.exchanges / 4); }

/// Lets the kernels of two graphs run one after the other, while the rest of the graphs may run at the same time. The
/// graphs are launched in turn.
struct kernel_turns {
  cudaEvent_t other, mine;

  void wait(cudaStream_t stream) const {
    if (is_captured(stream)) // not in the warm-up run
      gpu::require(cudaStreamWaitEvent(stream, other, cudaEventWaitExternal), "cudaStreamWaitEvent");
  }
  void end(cudaStream_t stream) const {
    if (is_captured(stream))
      gpu::require(cudaEventRecordWithFlags(mine, stream, cudaEventRecordExternal), "cudaEventRecordWithFlags");
  }

private:
  static bool is_captured(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    gpu::require(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
    return status == cudaStreamCaptureStatusActive;
  }
};

/// Streams, each with an event. The buffers of a worker share one stream, and so run one after the other; or each has
/// its own, and their kernels are in turn.
class buffer_streams {
public:
  buffer_streams(int workers, int buffers, bool share_a_stream) : workers_(static_cast<std::size_t>(workers)) {
    for (int id = 0; id < (share_a_stream ? workers : workers * buffers); ++id) {
      one &made = all_.emplace_back();
      gpu::require(cudaStreamCreateWithFlags(&made.stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
      gpu::require(cudaEventCreateWithFlags(&made.event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    }
  }
  ~buffer_streams() {
    for (const one &made : all_) {
      cudaStreamDestroy(made.stream);
      cudaEventDestroy(made.event);
    }
  }
  buffer_streams(const buffer_streams &) = delete;
  buffer_streams &operator=(const buffer_streams &) = delete;
  [[nodiscard]] cudaStream_t of_buffer(std::size_t id) const { return all_[id % all_.size()].stream; }
  /// Of two buffers that do not share a stream.
  [[nodiscard]] kernel_turns turns_of(std::size_t id) const {
    return {all_[(id + workers_) % all_.size()].event, all_[id].event};
  }

private:
  struct one {
    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
  };
  std::size_t workers_;
  std::vector<one> all_;
};

/// A worker as the specification prints one: the hook copies the request to device memory, the graph copies it to
/// pinned memory and signals by a kernel, and the CPU stage polls and claims the flag.
class specified_worker {
public:
  /// written_input: the graph reads the request there, and there is no hook. nullptr: as described above. kernels: the
  /// kernel waits for that of the worker's other buffer.
  specified_worker(std::size_t payload_bytes, std::uint64_t busy_ns, cudaStream_t its,
                   const void *written_input = nullptr, const kernel_turns *kernels = nullptr)
      : bytes_(payload_bytes), is_written_(written_input != nullptr), input_(payload_bytes), output_(payload_bytes),
        flag_(sizeof(int)), stream_(its) {
    const void *const input = is_written_ ? written_input : input_.as<void>();
    const auto captured = capture_graph(graph_, [&](cudaStream_t stream) {
      if (kernels != nullptr)
        kernels->wait(stream);
      if (busy_ns != 0)
        if (const cudaError_t refused = launch_busy(busy_ns, stream); refused != cudaSuccess)
          return refused;
      if (kernels != nullptr)
        kernels->end(stream);
      if (const cudaError_t refused = cudaMemcpyAsync(output_.host<void>(), input, bytes_, cudaMemcpyDefault, stream);
          refused != cudaSuccess)
        return refused;
      return launch_signal(flag_.device<int>(), stream);
    });
    if (!captured)
      throw std::runtime_error(captured.text);
    flag().store(0); // the warm-up run has set it
  }
  specified_worker(const specified_worker &) = delete;
  specified_worker &operator=(const specified_worker &) = delete;

  pipe::gpu_worker_resources resources() {
    pipe::gpu_worker_resources r;
    r.graph_exec = graph_.exec();
    r.stream = stream_;
    r.pre_launch_fn = is_written_ ? nullptr : &specified_worker::stage;
    r.pre_launch_data = this;
    r.function_id = kBenchPipelineFunction;
    r.user_context = this;
    return r;
  }
  static std::size_t cpu_stage(const pipe::cpu_stage_context &c) {
    auto &w = *static_cast<specified_worker *>(c.user_context);
    int ready = 1;
    if (!w.flag().compare_exchange_strong(ready, 2, std::memory_order_acquire, std::memory_order_relaxed))
      return 0;
    const auto *words = w.output_.host<std::uint64_t>();
    const std::uint64_t answer[] = {words[0], words[w.bytes_ / 8 - 1]};
    std::memcpy(c.response_buffer, answer, sizeof(answer));
    w.flag().store(0, std::memory_order_release);
    return sizeof(answer);
  }

  /// The same work without a pipeline.
  void launch(void *frame_dev) {
    stage(this, frame_dev, stream_);
    gpu::require(cudaGraphLaunch(graph_.exec(), stream_), "cudaGraphLaunch");
  }
  bool ended() {
    if (flag().load(std::memory_order_acquire) != 1)
      return false;
    flag().store(0, std::memory_order_release);
    return true;
  }

private:
  std::atomic_ref<int> flag() { return std::atomic_ref(*flag_.host<int>()); }
  static void stage(void *self, void *slot_dev, cudaStream_t stream) {
    auto &w = *static_cast<specified_worker *>(self);
    gpu::require(cudaMemcpyAsync(w.input_.as<void>(), static_cast<std::uint8_t *>(slot_dev) + CUDAQ_RPC_HEADER_SIZE,
                                 w.bytes_, cudaMemcpyDefault, stream),
                 "cudaMemcpyAsync");
  }

  std::size_t bytes_;
  bool is_written_;
  gpu::device_block input_;
  gpu::mapped_block output_, flag_;
  cudaStream_t stream_;
  captured_graph graph_;
};

/// Who launches a worker's graph, and how its request gets there.
enum class launched_by {
  pipeline,           ///< the dispatcher, or with a backlog the worker's thread: what a program gets without a setting
  pipeline_with_hook, ///< the same, with pre_launch_on_worker
  dispatcher,         ///< always, because of a post-launch hook, which does nothing here
  worker,             ///< its own thread; the hook copies the request
  worker_that_writes  ///< its own thread, which writes the request to the graph's input
};

struct variant {
  launched_by how;
  const char *text;
  const char *word; ///< in the names of its figures
  int buffers = 1;
  bool share_a_stream = true;
};

class staged_worker {
public:
  staged_worker(const variant &v, std::size_t id, std::size_t payload_bytes, std::uint64_t busy_ns, int gpu,
                const buffer_streams &its)
      : how_(v.how),
        stage_(how_ != launched_by::worker && how_ != launched_by::worker_that_writes
                   ? nullptr
                   : std::make_unique<gpu::graph_stage>(gpu::graph_stage_config{
                         .device_id = gpu, .input_bytes = how_ == launched_by::worker ? 0 : payload_bytes})),
        turns_(v.share_a_stream ? kernel_turns{} : its.turns_of(id)),
        worker_(payload_bytes, busy_ns, its.of_buffer(id), stage_ == nullptr ? nullptr : stage_->input(),
                v.share_a_stream ? nullptr : &turns_) {}
  pipe::gpu_worker_resources resources() {
    pipe::gpu_worker_resources r = worker_.resources();
    if (how_ == launched_by::dispatcher)
      r.post_launch_fn = [](void *, void *, cudaStream_t) {};
    r.pre_launch_on_worker = how_ == launched_by::pipeline_with_hook;
    return stage_ == nullptr ? r : stage_->resources(r);
  }

private:
  launched_by how_;
  std::unique_ptr<gpu::graph_stage> stage_;
  kernel_turns turns_;
  specified_worker worker_;
};

/// Bare work: the frames, in mapped memory, and the workers.
struct bare_work {
  bare_work(std::size_t payload_bytes, std::size_t slot_size, std::uint64_t busy_ns, const bench_options &o)
      : options(o), stride(slot_size), frames(slot_size * kPipelineWorkers), streams(kPipelineWorkers, 1, true) {
    for (std::size_t id = 0; id < kPipelineWorkers; ++id)
      workers.emplace_back(payload_bytes, busy_ns, streams.of_buffer(id));
  }
  void launch(std::size_t id) { workers[id].launch(frames.device<std::uint8_t>() + id * stride); }
  void await(std::size_t id) {
    for (const std::uint64_t begin = now_ns(); !workers[id].ended();)
      if (static_cast<double>(now_ns() - begin) > options.timeout_s * 1e9)
        throw check_failed("FAILED: a graph does not signal");
  }

  latency_histogram one_by_one(std::uint64_t n) {
    latency_histogram latency;
    for (std::uint64_t k = 0; k < n; ++k) {
      const std::uint64_t begin = now_ns();
      launch(k % kPipelineWorkers);
      await(k % kPipelineWorkers);
      latency.record(now_ns() - begin);
    }
    return latency;
  }
  /// All workers busy, one thread. Returns nanoseconds.
  std::uint64_t full(std::uint64_t n) {
    const std::uint64_t begin = now_ns();
    for (std::uint64_t k = 0; k < n + kPipelineWorkers; ++k) {
      if (k >= kPipelineWorkers)
        await(k % kPipelineWorkers);
      if (k < n)
        launch(k % kPipelineWorkers);
    }
    return now_ns() - begin;
  }
  /// All workers busy, a thread for each.
  std::uint64_t full_threads(std::uint64_t n) {
    const std::uint64_t begin = now_ns();
    std::vector<std::thread> threads;
    std::atomic<bool> failed{false};
    for (std::size_t id = 0; id < kPipelineWorkers; ++id)
      threads.emplace_back([&, id] {
        try {
          gpu::require(cudaSetDevice(options.gpu), "cudaSetDevice");
          for (std::uint64_t k = id; k < n; k += kPipelineWorkers) {
            launch(id);
            await(id);
          }
        } catch (const std::exception &) {
          failed = true;
        }
      });
    for (std::thread &t : threads)
      t.join();
    if (failed)
      throw check_failed("FAILED: bare launches by several threads");
    return now_ns() - begin;
  }

  const bench_options &options;
  std::size_t stride;
  gpu::mapped_block frames;
  buffer_streams streams;
  std::deque<specified_worker> workers;
};

constexpr variant kVariants[] = {
    {launched_by::pipeline, "", ""},
    {launched_by::pipeline_with_hook, ", hook on the worker", "-hook-on-worker"},
    {launched_by::dispatcher, ", launched by the dispatcher", "-by-dispatcher"},
    {launched_by::worker, ", launched by the worker", "-by-worker"},
    {launched_by::worker_that_writes, ", launched by the worker, input written", "-written"}};
constexpr variant kBuffers[] = {{launched_by::worker, ", launched by the worker, one buffer", "-one"},
                                {launched_by::worker, ", launched by the worker, two buffers", "-two", 2},
                                {launched_by::worker_that_writes, ", input written, one buffer", "-written-one"},
                                {launched_by::worker_that_writes, ", input written, two buffers", "-written-two", 2}};
constexpr variant kTwoStreams[] = {
    {launched_by::worker, ", launched by the worker, two buffers on two streams", "", 2, false},
    {launched_by::worker_that_writes, ", input written, two buffers on two streams", "-written", 2, false}};

void measure_variant(const bench_options &o, const qec::decoding_config &c, figure_list &figures, const char *family,
                     const variant &v, ring_of owner, double bare_us) {
  const std::uint64_t warm_up = warm_up_of(o), n = exchanges_of(o);
  const std::size_t bytes = c.int32_input_bytes();
  const bool is_external = owner == ring_of::client;
  const auto named = [&](const char *figure) {
    return fmt::format("{}{}{}-{}", family, is_external ? "-external" : "", v.word, figure);
  };
  const std::string what =
      fmt::format("{}, specified staging, {} B{}{}", c.name, bytes, is_external ? ", external ring" : "", v.text);
  for (const std::uint64_t busy : {std::uint64_t{0}, kBusyNs}) {
    const buffer_streams its(kPipelineWorkers, v.buffers, v.share_a_stream);
    std::deque<staged_worker> workers;
    for (int id = 0; id < kPipelineWorkers * v.buffers; ++id)
      workers.emplace_back(v, static_cast<std::size_t>(id), bytes, busy, o.gpu, its);
    traffic t(o, kPipelineWorkers, c.slot_size, bytes, pipe::ring_memory::mapped, owner, v.buffers);
    t.start([&](int worker) { return workers[static_cast<std::size_t>(worker)].resources(); },
            &specified_worker::cpu_stage);
    if (busy == 0) {
      t.run(traffic::drive::one_by_one, warm_up);
      t.run(traffic::drive::one_by_one, n);
      figures.add(named("latency"), what + ": closed loop", t.latency, bare_us);
      if (bare_us != 0)
        figures.add_difference(named("over-bare"), what + ": closed loop over bare",
                               static_cast<double>(t.latency.percentile(50)) / 1000 - bare_us);
      figures.add_rate(named("rate"), what + ": as fast as possible", n, t.run(traffic::drive::full, n));
    } else {
      t.run(traffic::drive::periodic, warm_up);
      t.run(traffic::drive::periodic, n);
      figures.add(named("kernel-70us-latency"), what + ", 70 us kernel every 30 us", t.latency);
      figures.add_fraction(named("kernel-70us-rate"), what + ", 70 us kernel: fraction of workers / 70 us", n,
                           t.run(traffic::drive::full, n));
    }
    t.stop();
  }
}

} // namespace

void bench_specified_staging(const bench_options &o, const qec::decoding_config &c, figure_list &figures) {
  const std::uint64_t warm_up = warm_up_of(o), n = exchanges_of(o);
  const std::size_t bytes = c.int32_input_bytes();
  const std::string what = fmt::format("{}, specified staging, {} B", c.name, bytes);
  double bare_us = 0;
  {
    bare_work bare(bytes, c.slot_size, 0, o);
    bare.one_by_one(warm_up);
    const latency_histogram latency = bare.one_by_one(n);
    bare_us = static_cast<double>(latency.percentile(50)) / 1000;
    figures.add("staging-bare-latency", what + ": bare, one thread", latency);
    figures.add_rate("staging-bare-rate", what + ": bare, one thread, as fast as possible", n, bare.full(n));
    figures.add_rate("staging-bare-threads-rate", what + ": bare, a thread for each worker", n, bare.full_threads(n));
  }
  for (const ring_of owner : {ring_of::pipeline, ring_of::client})
    for (const variant &v : kVariants)
      measure_variant(o, c, figures, "staging", v, owner, bare_us);
}

void bench_staging_buffers(const bench_options &o, const qec::decoding_config &c, figure_list &figures) {
  for (const variant &v : kBuffers)
    measure_variant(o, c, figures, "staging-buffers", v, ring_of::pipeline, 0);
}

void bench_two_streams(const bench_options &o, const qec::decoding_config &c, figure_list &figures) {
  for (const variant &v : kTwoStreams)
    measure_variant(o, c, figures, "two-streams", v, ring_of::pipeline, 0);
}

} // namespace cudaq::realtime::tools
