// SPDX-License-Identifier: Apache-2.0
// Graphs that their worker's own thread launches: traffic with a hook that copies, and with an input that the stage
// writes, over restarts. unittests/kernels/qec/graph_stage_host_test.cpp tests everything else.
#include "kernels/qec/request_memory.h"
#include "unittests/gpu/qec/pipeline_gpu_rig.h"

#include "cudaq/qec/realtime/graph_stage.h"
#include "cudaq/realtime/daemon/dispatcher/graph_capture.h"

namespace cudaq::realtime::test {
namespace {

constexpr std::size_t kSlot = 16384;

/// The graph copies the request to the output, then sets the ready flag by a copy of a word that is 1.
class copy_graph {
public:
  /// its: the stream, for the buffers of one worker, which run one after the other; nullptr: the stage's own.
  copy_graph(const gpu::graph_stage_config &config, std::size_t bytes, cudaStream_t its)
      : stage(config), bytes_(bytes), stream_(its), input_(bytes), output_(bytes), words_(128) {
    const void *const input = stage.input() != nullptr ? stage.input() : input_.as<void>();
    *words_.host<int>() = 1;
    const auto captured = capture_graph(graph_, [&](cudaStream_t stream) {
      const cudaError_t refused = cudaMemcpyAsync(output_.host<void>(), input, bytes_, cudaMemcpyDefault, stream);
      return refused != cudaSuccess
                 ? refused
                 : cudaMemcpyAsync(words_.host<int>() + 16, words_.host<int>(), sizeof(int), cudaMemcpyDefault, stream);
    });
    EXPECT_TRUE(captured) << captured.text;
    words_.host<int>()[16] = 0; // the warm-up run has set it
  }
  pipe::gpu_worker_resources resources() {
    pipe::gpu_worker_resources r;
    r.graph_exec = graph_.exec();
    r.stream = stream_;
    r.function_id = kDecode;
    r.gpu_output = output_.host<void>();
    r.gpu_output_size = bytes_;
    r.ready_flag = words_.host<volatile int>() + 16;
    r.pre_launch_data = this;
    if (stage.input() == nullptr)
      r.pre_launch_fn = [](void *self, void *slot_dev, cudaStream_t stream) {
        const auto &g = *static_cast<copy_graph *>(self);
        gpu::require(cudaMemcpyAsync(g.input_.as<void>(), static_cast<std::uint8_t *>(slot_dev) + CUDAQ_RPC_HEADER_SIZE,
                                     g.bytes_, cudaMemcpyDefault, stream),
                     "cudaMemcpyAsync");
      };
    return stage.resources(r);
  }

  gpu::graph_stage stage;

private:
  std::size_t bytes_;
  cudaStream_t stream_;
  gpu::device_block input_;
  gpu::mapped_block output_, words_;
  captured_graph graph_;
};

struct how {
  const char *name;
  bool writes_input;
  std::size_t bytes;
  cudaq_memory_kind_t memory = CUDAQ_MEMORY_AUTO;
  int buffers = 1;
};
void PrintTo(const how &h, std::ostream *out) { *out << h.name; }

class GraphStage : public gpu_test, public ::testing::WithParamInterface<how> {};

TEST_P(GraphStage, EachRequestGoesThroughItsGraphOnceOverRestarts) {
  constexpr int kWorkers = 8;
  constexpr std::uint64_t kRequests = 5000;
  gpu::graph_stage_config config;
  config.device_id = test_device();
  config.input_bytes = GetParam().writes_input ? GetParam().bytes : 0;
  config.input_memory = GetParam().memory;
  std::deque<gpu::own_stream> streams;
  for (int id = 0; id < kWorkers; ++id)
    streams.emplace_back("the test");
  std::deque<copy_graph> graphs;
  for (int id = 0; id < kWorkers * GetParam().buffers; ++id)
    graphs.emplace_back(config, GetParam().bytes,
                        GetParam().buffers == 1 ? nullptr : streams[static_cast<std::size_t>(id % kWorkers)].get());
  for (int run = 0; run < 2; ++run) {
    seen_by_request seen(kRequests);
    pipe::pipeline_stage_config shape = gpu_pipeline(kWorkers, 32, kSlot);
    shape.buffers = GetParam().buffers;
    pipe::realtime_pipeline p(shape);
    p.set_gpu_stage([&](int id) { return graphs[static_cast<std::size_t>(id)].resources(); });
    p.set_cpu_stage([](const pipe::cpu_stage_context &c) { // every word of the request is its number
      const auto *words = static_cast<const std::uint64_t *>(c.gpu_output);
      std::uint64_t same = 1;
      for (std::size_t i = 1; i < c.gpu_output_size / 8; ++i)
        same &= words[i] == words[0];
      const std::uint64_t answer[] = {words[0], same};
      std::memcpy(c.response_buffer, answer, sizeof(answer));
      return sizeof(answer);
    });
    p.set_completion_handler([&](const pipe::completion &c) {
      std::uint64_t answer[2] = {};
      if (c.response_size == sizeof(answer))
        std::memcpy(answer, c.response, sizeof(answer));
      seen.record(c, answer[0] == c.request_id && answer[1] == 1);
    });
    std::vector<std::uint64_t> request(GetParam().bytes / 8);
    ASSERT_NO_FATAL_FAILURE(expect_run(p, seen, [&](std::uint64_t k) {
      std::ranges::fill(request, k);
      return std::span(reinterpret_cast<const std::uint8_t *>(request.data()), GetParam().bytes);
    }));
  }
}

INSTANTIATE_TEST_SUITE_P(Inputs, GraphStage,
                         ::testing::Values(how{"Hook", false, 64}, how{"HookLong", false, 13104},
                                           how{"Written", true, 64}, how{"WrittenLong", true, 13104},
                                           how{"WrittenMapped", true, 4096, CUDAQ_MEMORY_MAPPED},
                                           how{"HookTwoBuffers", false, 13104, CUDAQ_MEMORY_AUTO, 2},
                                           how{"WrittenTwoBuffers", true, 13104, CUDAQ_MEMORY_AUTO, 2}),
                         [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::test
