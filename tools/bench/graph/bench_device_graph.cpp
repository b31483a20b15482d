// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/graph/bench_device_graph.h"

#include "tools/bench/graph/bench_device_graph_kernels.h"
#include "tools/bench/graph/graph_service.h"

#include <atomic>
#include <cmath>
#include <cstring>

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

/// The floor: a scheduler of one thread polls a counting flag, launches a child graph, and relaunches itself after
/// every 100 launches. The child sets the other flag. Written without the library.
class bare_device_graphs {
public:
  /// `frames`: the scheduler reads 32 bytes, and the child sends them back.
  bare_device_graphs(bool frames, std::uint64_t timeout_ns)
      : timeout_ns_(timeout_ns), state_(sizeof(floor_graph_state), stream_) {
    void *block = nullptr, *device = nullptr;
    require_cuda(cudaHostAlloc(&block, kWords * sizeof(std::uint64_t), cudaHostAllocMapped), "cudaHostAlloc");
    std::memset(block, 0, kWords * sizeof(std::uint64_t));
    words_ = static_cast<std::uint64_t *>(block);
    require_cuda(cudaHostGetDevicePointer(&device, block, 0), "cudaHostGetDevicePointer");
    auto *const words = static_cast<std::uint64_t *>(device);
    begin_.rx_flag = words + kRxFlag;
    begin_.tx_flag = words + kTxFlag;
    begin_.stop = reinterpret_cast<const std::uint32_t *>(words + kStop);
    begin_.rx_slot = frames ? words + kRxSlot : nullptr;
    begin_.tx_slot = words + kTxSlot;
    words_[kRxSlot] = 1; // not 0: the scheduler ends if it reads only zeros
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
  loop_result one_by_one(const client_config &config, const tick_scale &scale) {
    start();
    loop_result result;
    poll_deadline deadline("floor of device graphs: the child does not answer", config.timeout_ns, config.share_core);
    std::uint64_t begin = now_ns();
    for (std::uint64_t n = 0; n < config.warm_up + config.exchanges; ++n) {
      if (n == config.warm_up)
        begin = now_ns();
      const std::uint64_t payload = random_word(config.seed, n);
      words_[kRxSlot + kPayloadWord] = payload;
      deadline.restart();
      const std::uint64_t t0 = ticks();
      word(kRxFlag).store(++sent_, std::memory_order_release);
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

client_config client_for(bench_session &session) {
  client_config client = session.client(kSlots, 1);
  client.payload_bytes = kPayloadBytes;
  client.function_id = kGraphFunctionId;
  client.rule = reply_rule::echo;
  return client;
}

round_runner bare_rounds(bench_session &session, bool frames) {
  const auto graphs = std::make_shared<bare_device_graphs>(frames, session.timeout_ns());
  return [&session, graphs] { return graphs->one_by_one(client_for(session), session.scale()); };
}

} // namespace

bench_rig make_device_graph_rig(bench_session &session, bool publishes, cudaq_memory_kind_t memory) {
  require_cuda(preload_device_graph_bench(), "loading the kernels of P8");
  const auto service = std::make_shared<device_graph_service>(session.options().gpu, publishes, memory);
  bench_rig rig;
  rig.floor = bare_rounds(session, true);
  rig.other_floors.emplace_back("device flag, launch, signal: no frame is touched", bare_rounds(session, false));
  rig.ours = [&session, service] {
    return dispatcher_round(*service->dispatcher, [&] {
      const request_port port(service->dispatcher->ring(), service->dispatcher->producer());
      return exchange_one_by_one(port, kSlots, client_for(session), session.scale());
    });
  };
  return rig;
}

} // namespace cudaq::realtime::tools
