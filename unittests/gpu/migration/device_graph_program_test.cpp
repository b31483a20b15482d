// SPDX-License-Identifier: Apache-2.0
// Programs with a device graph, as the existing system's examples have it: raw pinned arrays, a table filled on the
// device, one context of which the graph reads one field, and a graph that never raises its flag.
#include "unittests/gpu/migration/pinned_ring.h"

namespace cudaq::realtime::migration {
namespace {

struct program_form {
  const char *name;
  bool blocking_stream; ///< cudaStreamCreate instead of cudaStreamNonBlocking
  bool sets_the_flag;   ///< else it cleans up while the scheduler runs
};
void PrintTo(const program_form &form, std::ostream *out) { *out << form.name; }

class GraphProgram : public gpu_test, public ::testing::WithParamInterface<program_form> {
protected:
  void prepare() override { need_device_graphs(); }
};

// Known failure 59.
TEST_P(GraphProgram, CleansUpAfterAGraphThatRaisesNoFlag) {
  pinned_ring ring;
  pinned<int> shutdown;
  pinned<std::uint64_t> stats, runs;
  buffer_context *context = nullptr;
  cudaq_function_entry_t *table = nullptr;
  cudaGraphExec_t graph = nullptr;
  cudaStream_t stream = nullptr, setup = nullptr;
  cudaq_dispatch_graph_context *scheduler = nullptr;

  CUDA_ASSERT_OK(cudaMalloc(reinterpret_cast<void **>(&context), sizeof(GraphIOContext)));
  CUDA_ASSERT_OK(cudaMalloc(reinterpret_cast<void **>(&table), sizeof(*table)));
  CUDA_ASSERT_OK(cudaStreamCreate(&setup));
  CUDA_ASSERT_OK(GetParam().blocking_stream ? cudaStreamCreate(&stream)
                                            : cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA_ASSERT_OK(make_silent_graph(context, runs.dev, setup, &graph));
  CUDA_ASSERT_OK(init_graph_table(table, kFunction, graph, setup));
  const cudaq_ringbuffer_t r = ring.device_only();
  CUDA_ASSERT_OK(cudaq_create_dispatch_graph_regular(r.rx_flags, r.tx_flags, r.rx_data, r.tx_data, r.rx_stride_sz,
                                                     r.tx_stride_sz, table, 1, context, shutdown.dev, stats.dev, kSlots,
                                                     1, 32, stream, &scheduler));
  CUDA_ASSERT_OK(cudaq_launch_dispatch_graph(scheduler, stream));
  ring.send(0, kFunction, 41, 7);
  EXPECT_TRUE(eventually([&] { return detail::load_acquire(*runs.host) == 1; })) << "the graph did not run";
  std::uint32_t word = 0;
  std::memcpy(&word, ring.rx_data.host + sizeof(RPCHeader), sizeof(word));
  EXPECT_EQ(word, 42u) << "the result is in the request's slot, as the program wants it";

  if (GetParam().sets_the_flag) {
    detail::store_release(*shutdown.host, 1);
    EXPECT_TRUE(
        finishes_within(kDeadline, "cudaStreamSynchronize", [&] { CUDA_EXPECT_OK(cudaStreamSynchronize(stream)); }));
    ring.expect(0, CUDAQ_RPC_ERR_NO_RESPONSE, 0, 7);
  }
  EXPECT_TRUE(finishes_within(kDeadline, "cudaq_destroy_dispatch_graph",
                              [&] { CUDA_EXPECT_OK(cudaq_destroy_dispatch_graph(scheduler)); }));
  EXPECT_TRUE(finishes_within(kDeadline, "the clean-up", [&] {
    CUDA_EXPECT_OK(cudaGraphExecDestroy(graph));
    CUDA_EXPECT_OK(cudaFree(table));
    CUDA_EXPECT_OK(cudaFree(context));
    CUDA_EXPECT_OK(cudaStreamDestroy(stream));
    CUDA_EXPECT_OK(cudaStreamDestroy(setup));
    CUDA_EXPECT_OK(cudaDeviceSynchronize());
  }));
}

constexpr program_form kForms[] = {{"FlagFirst", false, true},
                                   {"BlockingStream", true, true},
                                   {"WhileItRuns", false, false},
                                   {"BlockingStreamWhileItRuns", true, false}};
INSTANTIATE_TEST_SUITE_P(Forms, GraphProgram, ::testing::ValuesIn(kForms),
                         [](const auto &form) { return std::string(form.param.name); });

class ModeProgram : public gpu_test {};

// Known failure 62.
TEST_F(ModeProgram, DispatchesThroughTheTags) {
  pinned<int> result;
  side_stream stream;
  CUDA_ASSERT_OK(use_mode_tags(result.dev, stream.get));
  EXPECT_EQ(*result.host, 42);
}

} // namespace
} // namespace cudaq::realtime::migration
