// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/graph/bench_device_graph.h"

#include "benchmarks/graph/bench_device_graph_kernels.h"
#include "benchmarks/graph/graph_service.h"

#include <atomic>
#include <cmath>
#include <cstring>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint32_t kSlots = 256;
constexpr std::uint32_t kSlotBytes = 64;
constexpr std::size_t kPayloadBytes = 8;

/// Indices of the floor's mapped words, each in cache lines of its own.
enum word_of : std::size_t { kRxFlag = 0, kTxFlag = 16, kStop = 32, kRxSlot = 48, kTxSlot = 64, kWords = 80 };
constexpr std::size_t kPayloadWord = 3; ///< after a header of 24 bytes

captured_graph for_the_device(const std::function<void(cudaStream_t)> &work) {
  captured_graph graph;
  const graph_capture_result captured =
      capture_graph(graph, work, graph_capture_options{.warm_ups = 0, .device_launch = true});
  if (!captured)
    throw gpu_error(captured.text);
  return graph;
}

/// Also of stores to write-combining memory, which a release store does not order.
void fence_posted_stores() {
#if defined(__x86_64__)
  _mm_sfence();
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

/// The floor: a scheduler of one thread polls a counting flag, launches a child graph, and relaunches itself after
/// every 100 launches. The child sets the other flag. Written without the library.
class bare_device_graphs {
public:
  /// `frames`: the scheduler reads 32 bytes, and the child sends them back. `memory`: of the request and its flag.
  bare_device_graphs(bool frames, int device_id, cudaq_memory_kind_t memory, std::uint64_t timeout_ns)
      : timeout_ns_(timeout_ns), state_(sizeof(floor_graph_state), stream_) {
    void *block = nullptr, *device = nullptr;
    require_cuda(cudaHostAlloc(&block, kWords * sizeof(std::uint64_t), cudaHostAllocMapped), "cudaHostAlloc");
    std::memset(block, 0, kWords * sizeof(std::uint64_t));
    words_ = static_cast<std::uint64_t *>(block);
    require_cuda(cudaHostGetDevicePointer(&device, block, 0), "cudaHostGetDevicePointer");
    auto *const words = static_cast<std::uint64_t *>(device);
    begin_.rx_flag = words + kRxFlag;
    rx_flag_ = words_ + kRxFlag;
    rx_slot_ = words_ + kRxSlot;
    begin_.rx_slot = words + kRxSlot;
    if (memory == CUDAQ_MEMORY_DEVICE_RX)
      use_device_memory(device_id);
    if (!frames)
      begin_.rx_slot = nullptr;
    begin_.tx_flag = words + kTxFlag;
    begin_.stop = reinterpret_cast<const std::uint32_t *>(words + kStop);
    begin_.tx_slot = words + kTxSlot;
    rx_slot_[0] = 1; // not 0: the scheduler ends if it reads only zeros
    auto *const state = state_.as<floor_graph_state>();
    child_ = for_the_device([&](cudaStream_t stream) { launch_floor_child(state, stream); });
    scheduler_ = for_the_device([&](cudaStream_t stream) { launch_floor_scheduler(state, stream); });
    begin_.child = child_.exec();
  }
  ~bare_device_graphs() {
    try {
      stop();
    } catch (const std::exception &e) {
      abandon(e.what());
    }
    cudaFreeHost(words_);
  }
  bare_device_graphs(const bare_device_graphs &) = delete;
  bare_device_graphs &operator=(const bare_device_graphs &) = delete;

  /// The measured time begins just before the flag is set and ends just after the child's flag is seen.
  loop_result one_by_one(const exchange_config &config, const tick_scale &scale) {
    start();
    loop_result result;
    poll_deadline deadline("floor of device graphs: the child does not answer", config.timeout_ns, config.share_core);
    std::uint64_t begin = now_ns();
    for (std::uint64_t n = 0; n < config.warm_up + config.exchanges; ++n) {
      if (n == config.warm_up)
        begin = now_ns();
      const std::uint64_t payload = random_word(config.seed, n);
      if (begin_.rx_slot != nullptr)
        rx_slot_[kPayloadWord] = payload;
      deadline.restart();
      const std::uint64_t t0 = ticks();
      signal(++sent_);
      while (word(kTxFlag).load(std::memory_order_acquire) != sent_)
        deadline.check();
      const auto ns = static_cast<std::uint64_t>(std::llround(scale.ns(ticks() - t0)));
      if (n >= config.warm_up)
        result.per_exchange.record(ns);
      result.wrong += begin_.rx_slot != nullptr && words_[kTxSlot + kPayloadWord] != payload ? 1 : 0;
    }
    result.wall_ns = now_ns() - begin;
    result.exchanges = config.exchanges;
    stop();
    return result;
  }

private:
  void use_device_memory(int device_id) {
    in_gpu_memory_ = std::make_unique<bare_ring>(device_id, 1, kSlotBytes, CUDAQ_MEMORY_DEVICE_RX);
    const cudaq_ringbuffer_t &ring = in_gpu_memory_->ring();
    begin_.rx_flag = const_cast<std::uint64_t *>(ring.rx_flags);
    begin_.rx_slot = reinterpret_cast<std::uint64_t *>(ring.rx_data);
    rx_flag_ = const_cast<std::uint64_t *>(ring.rx_flags_host);
    rx_slot_ = reinterpret_cast<std::uint64_t *>(ring.rx_data_host);
  }
  /// The frame before the flag; the flag leaves at once.
  void signal(std::uint64_t number) {
    if (in_gpu_memory_ != nullptr)
      fence_posted_stores();
    std::atomic_ref(*rx_flag_).store(number, std::memory_order_release);
    if (in_gpu_memory_ != nullptr)
      fence_posted_stores();
  }
  std::atomic_ref<std::uint64_t> word(word_of at) const { return std::atomic_ref<std::uint64_t>(words_[at]); }
  void start() {
    word(kStop).store(0, std::memory_order_release);
    begin_.seen = sent_;
    require_cuda(cudaMemcpyAsync(state_.as<void>(), &begin_, sizeof begin_, cudaMemcpyHostToDevice, stream_.get()),
                 "the floor's state");
    running_ = true;
    require_cuda(cudaGraphLaunch(scheduler_.exec(), stream_.get()), "launching the floor's scheduler");
  }
  void stop() {
    if (!running_)
      return;
    word(kStop).store(1, std::memory_order_release);
    if (!stream_.wait(timeout_ns_))
      abandon("the scheduler of a floor did not end after its stop word was set");
    running_ = false;
  }

  std::uint64_t timeout_ns_;
  gpu_stream stream_;
  gpu_memory state_;
  floor_graph_state begin_{};
  std::uint64_t *words_ = nullptr;
  std::unique_ptr<bare_ring> in_gpu_memory_; ///< of one slot; null: the request is in words_
  std::uint64_t *rx_flag_ = nullptr;
  std::uint64_t *rx_slot_ = nullptr; ///< written only: the CPU must not read GPU memory
  captured_graph child_, scheduler_;
  std::uint64_t sent_ = 0;
  bool running_ = false;
};

/// The graph of the case, and the dispatcher whose scheduler launches it.
struct device_graph_service {
  device_graph_service(int device, bool publishes, cudaq_memory_kind_t memory)
      : context(sizeof(GraphIOContextV2), stream) {
    graph =
        for_the_device([&](cudaStream_t on) { launch_answer(publishes, context.as<const GraphIOContextV2>(), on); });
    device_service_config c;
    c.device = device;
    c.num_slots = kSlots;
    c.slot_bytes = kSlotBytes;
    c.memory = memory;
    c.options = default_options();
    c.graph_contexts = {context.as<void>()};
    c.graph_io_kind = publishes ? CUDAQ_GRAPH_IO_PUBLISHING : CUDAQ_GRAPH_IO_FORWARDED;
    c.fill = [this](cudaq_function_entry_t *entry, std::uint32_t, cudaStream_t on) {
      cudaq_function_entry_t e{};
      e.function_id = kGraphFunctionId;
      e.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
      e.handler.graph_exec = graph.exec();
      return cudaMemcpyAsync(entry, &e, sizeof e, cudaMemcpyHostToDevice, on);
    };
    dispatcher = std::make_unique<device_service>(c);
  }

  gpu_stream stream;
  gpu_memory context;
  captured_graph graph;
  std::unique_ptr<device_service> dispatcher; ///< last member: destroyed before the graph that it launches
};

exchange_config client_for(bench_session &session) {
  exchange_config client = session.client(kSlots, 1);
  client.payload_bytes = kPayloadBytes;
  client.function_id = kGraphFunctionId;
  client.rule = reply_rule::echo;
  return client;
}

round_runner bare_rounds(bench_session &session, bool frames, cudaq_memory_kind_t memory) {
  const auto graphs = std::make_shared<bare_device_graphs>(frames, session.options().gpu, memory, session.timeout_ns());
  return [&session, graphs] { return graphs->one_by_one(client_for(session), session.scale()); };
}

} // namespace

bench_rig make_device_graph_rig(bench_session &session, bool publishes, cudaq_memory_kind_t memory) {
  require_cuda(preload_device_graph_bench(), "loading the kernels of the schedulers");
  const auto service = std::make_shared<device_graph_service>(session.options().gpu, publishes, memory);
  bench_rig rig;
  rig.floor = bare_rounds(session, true, memory);
  rig.other_floors.emplace_back("device flag, launch, signal: no frame is touched",
                                bare_rounds(session, false, memory));
  if (memory == CUDAQ_MEMORY_DEVICE_RX)
    rig.other_floors.emplace_back("the floor of scheduler-8B, in mapped memory",
                                  bare_rounds(session, true, CUDAQ_MEMORY_MAPPED));
  rig.ours = [&session, service] {
    return dispatcher_round(*service->dispatcher, [&] {
      const ring_port port(service->dispatcher->ring(), service->dispatcher->producer());
      return exchange_one_by_one(port, kSlots, client_for(session), session.scale());
    });
  };
  return rig;
}

} // namespace cudaq::realtime::tools
