// SPDX-License-Identifier: Apache-2.0
// Pipeline workers with functions in place of graphs, which their own threads launch.
#pragma once

#include "cudaq/qec/realtime/graph_stage.h"
#include "unittests/kernels/qec/adder_rig.h"

#include "cudaq/realtime/detail/base/flag_word.h"

namespace cudaq::qec::realtime::test {

/// A worker: its graph adds one to the word at `input`, which a hook or the stage has put there.
struct adder {
  explicit adder(const gpu::graph_stage_config &config) : stage(config) {
    graph.run = [this] {
      if (in_graph)
        in_graph();
      while (hangs.load())
        nap();
      std::uint64_t word = 0;
      std::memcpy(&word, stage.input() != nullptr ? stage.input() : &copied, sizeof(word));
      output = word + 1;
      cudaq::realtime::detail::store_release(ready, 1);
    };
  }
  gpu_worker_resources resources() {
    gpu_worker_resources r;
    r.graph_exec = &graph;
    r.function_id = kFunction;
    r.gpu_output = &output;
    r.gpu_output_size = sizeof(output);
    r.ready_flag = &ready;
    r.pre_launch_data = r.post_launch_data = this;
    if (stage.input() == nullptr)
      r.pre_launch_fn = [](void *self, void *slot, cudaStream_t stream) {
        static_cast<adder *>(self)->copy(slot, stream);
      };
    return r;
  }
  void copy(void *slot, cudaStream_t stream) {
    EXPECT_NE(stream, nullptr);
    if (in_hook)
      in_hook();
    std::memcpy(&copied, static_cast<std::uint8_t *>(slot) + CUDAQ_RPC_HEADER_SIZE, sizeof(copied));
  }

  gpu::graph_stage stage;
  CUgraphExec_st graph;
  std::atomic<bool> hangs{false};
  std::function<void()> in_hook, in_graph;
  std::uint64_t copied = 0, output = 0;
  volatile int ready = 0;
};

/// The workers of a pipeline. At its end no call of the CUDA runtime was wrong and nothing is left.
class graph_adders {
public:
  static constexpr const char *kInUse = "it serves a worker already";

  graph_adders() = default;
  ~graph_adders() {
    end();
    EXPECT_EQ(fake_cuda::violations(), "");
    EXPECT_EQ(fake_cuda::clean_up(), 0);
  }
  graph_adders(const graph_adders &) = delete;
  graph_adders &operator=(const graph_adders &) = delete;

  void make(const gpu::graph_stage_config &config = {}, int workers = kWorkers) {
    for (int id = 0; id < workers; ++id)
      adders.emplace_back(config);
  }
  /// On this device, each with memory for its input.
  void make_with_input(int workers, int device_id) {
    gpu::graph_stage_config c;
    c.input_bytes = sizeof(std::uint64_t);
    c.input_memory = CUDAQ_MEMORY_MAPPED;
    c.device_id = device_id;
    make(c, workers);
  }
  void end() { adders.clear(); }
  void make_with_limit(std::uint64_t timeout_ns) {
    gpu::graph_stage_config c;
    c.timeout_ns = timeout_ns;
    make(c);
  }
  gpu_worker_resources resources(int id) {
    adder &a = adders[static_cast<std::size_t>(id)];
    return a.stage.resources(a.resources());
  }
  void hang(bool now) {
    for (adder &a : adders)
      a.hangs = now;
  }
  std::deque<adder> adders;
};

} // namespace cudaq::qec::realtime::test
