// SPDX-License-Identifier: Apache-2.0
#include "bench_device_graph.h"

#include "bench_device_graph_kernels.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <cuda_runtime_api.h>
#include <memory>
#include <stdexcept>

namespace cudaq::realtime::tools {
namespace {

using steady_clock = std::chrono::steady_clock;
constexpr auto kLimit = std::chrono::seconds(20);
constexpr std::uint32_t kFunction = 1;
constexpr std::uint32_t kSlots = 8;
constexpr std::uint32_t kSlotBytes = 64;

void check(cudaError_t error, const char *what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

std::uint64_t load(std::uint64_t *word) {
  return std::atomic_ref<std::uint64_t>(*word).load(std::memory_order_acquire);
}
void store(std::uint64_t *word, std::uint64_t value) {
  std::atomic_ref<std::uint64_t>(*word).store(value, std::memory_order_release);
}

/// Mapped host memory; the device address is the same.
template <class T>
std::shared_ptr<T> mapped(std::size_t n) {
  void *memory = nullptr;
  check(cudaHostAlloc(&memory, n * sizeof(T), cudaHostAllocMapped), "cudaHostAlloc");
  std::memset(memory, 0, n * sizeof(T));
  return {static_cast<T *>(memory), [](T *p) { cudaFreeHost(p); }};
}
template <class T>
std::shared_ptr<T> on_device(const T &value) {
  void *memory = nullptr;
  check(cudaMalloc(&memory, sizeof(T)), "cudaMalloc");
  check(cudaMemcpy(memory, &value, sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  return {static_cast<T *>(memory), [](T *p) { cudaFree(p); }};
}
std::shared_ptr<CUstream_st> make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  return {stream, [](cudaStream_t s) { cudaStreamDestroy(s); }};
}

/// One case: something that answers requests of this thread.
class rig {
public:
  virtual ~rig() = default;
  virtual void start() = 0;
  virtual void stop() = 0;
  /// One exchange; its time in nanoseconds.
  virtual std::uint64_t exchange(std::uint64_t &wrong) = 0;

protected:
  template <class Done>
  static std::uint64_t time_of(steady_clock::time_point begin, Done &&done) {
    for (std::uint64_t looks = 1; !done(); ++looks)
      if (looks % 65536 == 0 && steady_clock::now() - begin > kLimit)
        throw std::runtime_error("no answer after 20 s");
    return static_cast<std::uint64_t>((steady_clock::now() - begin).count());
  }
  static void wait(cudaStream_t stream) {
    const auto begin = steady_clock::now();
    cudaError_t state = cudaSuccess;
    while ((state = cudaStreamQuery(stream)) == cudaErrorNotReady)
      if (steady_clock::now() - begin > kLimit)
        throw std::runtime_error("the scheduler did not end");
    check(state, "the scheduler's end");
  }
  std::shared_ptr<CUstream_st> stream_ = make_stream();
};

class floor_rig : public rig {
public:
  explicit floor_rig(bool frames) : words_(mapped<std::uint64_t>(64)) {
    host_.rx_flag = words_.get();
    host_.tx_flag = words_.get() + 16;
    host_.stop = reinterpret_cast<const std::uint32_t *>(words_.get() + 32);
    host_.rx_slot = frames ? words_.get() + 40 : nullptr;
    host_.tx_slot = words_.get() + 48;
    words_.get()[40] = 1;
    state_ = on_device(host_);
    check(make_floor_child(state_.get(), stream_.get(), &host_.child), "the floor's child");
    check(make_floor_scheduler(state_.get(), stream_.get(), &scheduler_), "the floor's scheduler");
  }
  ~floor_rig() override {
    cudaGraphExecDestroy(scheduler_);
    cudaGraphExecDestroy(host_.child);
  }
  void start() override {
    store(words_.get() + 32, 0);
    host_.seen = sent_;
    check(cudaMemcpyAsync(state_.get(), &host_, sizeof(host_), cudaMemcpyHostToDevice, stream_.get()), "state");
    check(cudaStreamSynchronize(stream_.get()), "state");
    check(cudaGraphLaunch(scheduler_, stream_.get()), "launch of the floor");
  }
  void stop() override {
    store(words_.get() + 32, 1);
    wait(stream_.get());
  }
  std::uint64_t exchange(std::uint64_t &) override {
    ++sent_;
    if (host_.rx_slot != nullptr)
      host_.rx_slot[3] = sent_;
    const auto begin = steady_clock::now();
    store(host_.rx_flag, sent_);
    return time_of(begin, [&] { return load(host_.tx_flag) == sent_; });
  }

private:
  std::shared_ptr<std::uint64_t> words_;
  floor_graph_state host_{};
  std::shared_ptr<floor_graph_state> state_;
  cudaGraphExec_t scheduler_ = nullptr;
  std::uint64_t sent_ = 0;
};

class library_rig : public rig {
public:
  library_rig(answer_kind kind, bool publishes, const device_graph_plan &plan)
      : echo_(kind == answer_kind::echo), words_(mapped<std::uint64_t>(32)) {
    cudaq_ringbuffer_options_t options;
    cudaq_ringbuffer_options_init(&options, sizeof(options));
    options.memory_kind = CUDAQ_MEMORY_MAPPED;
    options.num_slots = kSlots;
    options.slot_size = kSlotBytes;
    if (cudaq_ringbuffer_create(&options, &memory_, &ring_) != CUDAQ_OK)
      throw std::runtime_error(cudaq_last_error_message());
    io_ = on_device(GraphIOContextV2{});
    check(make_answer_graph(kind, publishes, io_.get(), stream_.get(), &graph_), "the graph");
    cudaq_function_entry_t entry{};
    entry.function_id = kFunction;
    entry.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
    entry.handler.graph_exec = graph_;
    table_ = on_device(entry);
    void *contexts[] = {io_.get()};
    cudaq_dispatch_graph_params_t p{};
    p.struct_size = sizeof(p);
    p.graph_io_kind = publishes ? CUDAQ_GRAPH_IO_PUBLISHING : CUDAQ_GRAPH_IO_FORWARDED;
    p.num_schedulers = plan.schedulers;
    p.own_streams = plan.own_streams;
    cudaq_dispatch_launch_params_t launch{};
    launch.struct_size = sizeof(launch);
    launch.rx_flags = ring_.rx_flags, launch.tx_flags = ring_.tx_flags;
    launch.rx_data = ring_.rx_data, launch.tx_data = ring_.tx_data;
    launch.rx_stride_sz = ring_.rx_stride_sz, launch.tx_stride_sz = ring_.tx_stride_sz;
    launch.function_table = table_.get(), launch.func_count = 1;
    launch.shutdown_flag = reinterpret_cast<int *>(words_.get()), launch.stats = words_.get() + 16;
    launch.num_slots = kSlots, launch.stream = stream_.get();
    p.launch = &launch;
    p.graph_io_ctxs = contexts;
    check(cudaq_create_dispatch_graph_v2(&p, &context_), "cudaq_create_dispatch_graph_v2");
  }
  ~library_rig() override {
    cudaq_destroy_dispatch_graph(context_);
    cudaGraphExecDestroy(graph_);
    cudaq_ringbuffer_destroy(memory_);
  }
  void start() override {
    store(words_.get(), 0);
    check(cudaq_launch_dispatch_graph(context_, stream_.get()), "cudaq_launch_dispatch_graph");
  }
  void stop() override {
    store(words_.get(), 1);
    wait(stream_.get());
  }
  std::uint64_t exchange(std::uint64_t &wrong) override {
    const auto slot = static_cast<std::uint32_t>(sent_ % kSlots);
    const auto id = static_cast<std::uint32_t>(++sent_);
    time_of(steady_clock::now(), [&] { return cudaq_host_ringbuffer_slot_available(&ring_, slot) == 1; });
    cudaq_host_ringbuffer_write_rpc_request(&ring_, slot, kFunction, &sent_, sizeof(sent_), id, sent_);
    const auto begin = steady_clock::now();
    cudaq_host_ringbuffer_signal_slot(&ring_, slot);
    const std::uint64_t ns =
        time_of(begin, [&] { return cudaq_host_ringbuffer_poll_tx_flag(&ring_, slot, nullptr) == CUDAQ_TX_READY; });
    cudaq_rpc_response_t header{};
    const void *result = nullptr;
    const bool framed = cudaq_host_ringbuffer_read_rpc_response(&ring_, slot, &header, &result) == CUDAQ_OK;
    wrong += !framed || header.status != 0 || (echo_ && (header.request_id != id || header.ptp_timestamp != sent_));
    cudaq_host_ringbuffer_clear_slot(&ring_, slot);
    return ns;
  }

private:
  const bool echo_;
  std::shared_ptr<std::uint64_t> words_;
  cudaq_ringbuffer_memory_t *memory_ = nullptr;
  cudaq_ringbuffer_t ring_{};
  std::shared_ptr<GraphIOContextV2> io_;
  std::shared_ptr<cudaq_function_entry_t> table_;
  cudaGraphExec_t graph_ = nullptr;
  cudaq_dispatch_graph_context *context_ = nullptr;
  std::uint64_t sent_ = 0;
};

} // namespace

std::vector<device_graph_case> measure_device_graphs(const device_graph_plan &plan) {
  check(preload_graph_benchmark(), "loading the kernels");
  struct {
    const char *name;
    int floor;
    std::unique_ptr<rig> made;
  } all[] = {{"floor: flag, launch, signal", -1, std::make_unique<floor_rig>(false)},
             {"floor: flag and frame, launch, frame and signal", -1, std::make_unique<floor_rig>(true)},
             {"graph that signals, forwarded", 0, std::make_unique<library_rig>(answer_kind::signal, false, plan)},
             {"graph that signals, publishing", 0, std::make_unique<library_rig>(answer_kind::signal, true, plan)},
             {"graph that echoes, forwarded", 1, std::make_unique<library_rig>(answer_kind::echo, false, plan)},
             {"graph that echoes, publishing", 1, std::make_unique<library_rig>(answer_kind::echo, true, plan)}};
  std::vector<device_graph_case> cases;
  for (const auto &a : all)
    cases.push_back({a.name, a.floor, {}, 0});
  for (std::uint32_t s = 0; s < plan.segments; ++s)
    for (std::size_t c = 0; c < cases.size(); ++c) {
      rig &r = *all[c].made;
      r.start();
      std::uint64_t ignored = 0;
      for (std::uint64_t n = 0; n < plan.warm_up; ++n)
        r.exchange(ignored);
      for (std::uint64_t n = 0; n < plan.exchanges / plan.segments; ++n)
        cases[c].ns.record(r.exchange(cases[c].wrong));
      r.stop();
    }
  return cases;
}

} // namespace cudaq::realtime::tools
