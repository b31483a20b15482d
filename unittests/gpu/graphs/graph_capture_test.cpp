// SPDX-License-Identifier: Apache-2.0
// Captures while other threads use CUDA, and captures that fail.
#include "cudaq/realtime/daemon/dispatcher/graph_capture.h"

#include "unittests/gpu/graphs/host_graphs.h"
#include "unittests/gpu/support/gpu_dispatcher.h"

#include <stdexcept>

namespace cudaq::realtime::test {
namespace {

class GraphCapture : public gpu_test {
protected:
  /// No capture is left open: a later capture succeeds, and so does a call that an open capture of this thread would
  /// refuse.
  static void expect_unspoilt() {
    CUDA_EXPECT_OK(cudaPeekAtLastError());
    void *memory = nullptr;
    CUDA_EXPECT_OK(cudaMalloc(&memory, 64));
    CUDA_EXPECT_OK(cudaFree(memory));
    captured_graph graph;
    const graph_capture_result again = capture_graph(graph, [](cudaStream_t stream) { return launch_wait(0, stream); });
    EXPECT_EQ(again.status, CUDAQ_OK) << again.text;
    EXPECT_TRUE(graph);
  }
};

TEST_F(GraphCapture, TheGraphDoesWhatWasCapturedEveryTime) {
  device_array<int> out(1);
  CUDA_ASSERT_OK(preload_other_kernel());
  captured_graph graph;
  int calls = 0;
  const graph_capture_result result = capture_graph(graph,
                                                    [&](cudaStream_t stream) {
                                                      ++calls;
                                                      return launch_other_kernel(out.get, stream);
                                                    },
                                                    {device_now(), 2});
  ASSERT_EQ(result.status, CUDAQ_OK) << result.text;
  EXPECT_EQ(calls, 3) << "two warm-up runs and the capture";
  EXPECT_EQ(graph.num_nodes(), 1u);
  const side_stream stream;
  for (int n = 0; n < 3; ++n) {
    out.upload({0});
    CUDA_ASSERT_OK(cudaGraphLaunch(graph.exec(), stream.get));
    CUDA_ASSERT_OK(stream.wait());
    EXPECT_EQ(out.download()[0], 42);
  }
  captured_graph moved = std::move(graph);
  EXPECT_FALSE(graph);
  EXPECT_TRUE(moved);
}

TEST_F(GraphCapture, AGraphForLaunchesByKernelsCanBeCaptured) {
  captured_graph graph;
  graph_capture_options options;
  options.device_launch = true;
  const graph_capture_result result = capture_graph(
      graph, [](cudaStream_t stream) { return launch_wait(0, stream); }, options);
  ASSERT_EQ(result.status, CUDAQ_OK) << result.text;
  unsigned long long flags = 0;
  CUDA_ASSERT_OK(cudaGraphExecGetFlags(graph.exec(), &flags));
  EXPECT_NE(flags & cudaGraphInstantiateFlagDeviceLaunch, 0u);
}

// Known failure 31.
TEST_F(GraphCapture, AnotherThreadAllocatesAndCopiesMeanwhile) {
  std::atomic<bool> end{false};
  std::atomic<std::uint32_t> rounds{0};
  std::vector<std::string> errors;
  std::thread other([&] {
    std::vector<char> bytes(4096);
    const auto note = [&](const char *what, cudaError_t error) {
      if (error != cudaSuccess)
        errors.push_back(std::string(what) + ": " + cudaGetErrorName(error));
    };
    while (!end && errors.size() < 10) {
      void *memory = nullptr;
      note("cudaMalloc", cudaMalloc(&memory, bytes.size()));
      note("cudaMemcpy", cudaMemcpy(memory, bytes.data(), bytes.size(), cudaMemcpyHostToDevice)); // legacy stream
      note("cudaMemset", cudaMemset(memory, 1, bytes.size()));
      note("cudaFree", cudaFree(memory));
      ++rounds;
    }
  });
  ASSERT_TRUE(eventually([&] { return rounds.load() != 0; }));
  device_array<int> out(1);
  const std::uint32_t before = rounds.load();
  for (int n = 0; n < 100; ++n) {
    captured_graph graph;
    const graph_capture_result result = capture_graph(graph, [&](cudaStream_t stream) {
      const cudaError_t error = launch_other_kernel(out.get, stream);
      std::this_thread::sleep_for(
          std::chrono::microseconds(200)); // the other thread's CUDA calls happen during the capture
      return error;
    });
    ASSERT_EQ(result.status, CUDAQ_OK) << "capture " << n << ": " << result.text;
    const side_stream stream;
    CUDA_ASSERT_OK(cudaGraphLaunch(graph.exec(), stream.get));
    CUDA_ASSERT_OK(stream.wait());
  }
  EXPECT_GT(rounds.load(), before + 10) << "the other thread made too few CUDA calls";
  end = true;
  other.join();
  EXPECT_TRUE(errors.empty()) << errors.size() << " errors of the other thread, the first: " << errors[0];
}

TEST_F(GraphCapture, WorkThatFailsLeavesNoGraphAndNoCapture) {
  captured_graph graph;
  graph_capture_options cold;
  cold.warm_ups = 0;
  graph_capture_result result = capture_graph(
      graph, [](cudaStream_t) { return cudaErrorInvalidValue; }, cold);
  EXPECT_EQ(result.status, CUDAQ_ERR_CUDA);
  EXPECT_EQ(result.cuda_error, cudaErrorInvalidValue);
  EXPECT_NE(result.text.find("cudaErrorInvalidValue"), std::string::npos) << result.text;
  expect_unspoilt();
  result = capture_graph(
      graph, [](cudaStream_t) { throw std::runtime_error("no model"); }, cold);
  EXPECT_EQ(result.status, CUDAQ_ERR_INTERNAL);
  EXPECT_NE(result.text.find("no model"), std::string::npos) << result.text;
  expect_unspoilt();
  result = capture_graph(
      graph, [](cudaStream_t) { throw 1; }, cold);
  EXPECT_EQ(result.status, CUDAQ_ERR_INTERNAL);
  result = capture_graph(graph, [](cudaStream_t) {});
  EXPECT_EQ(result.status, CUDAQ_ERR_INVALID_ARG);
  EXPECT_NE(result.text.find("nothing"), std::string::npos) << result.text;
  expect_unspoilt();
  EXPECT_FALSE(graph) << "a failed capture must leave the graph empty";
}

TEST_F(GraphCapture, WorkThatSpoilsTheCaptureIsAnError) {
  captured_graph graph;
  graph_capture_options cold;
  cold.warm_ups = 0;
  graph_capture_result result = capture_graph(
      graph, [](cudaStream_t stream) { (void)cudaStreamSynchronize(stream); }, cold);
  EXPECT_EQ(result.status, CUDAQ_ERR_CUDA) << "waiting for a stream in capture is an error";
  expect_unspoilt();
  const side_stream other;
  cudaEvent_t fork = nullptr;
  CUDA_ASSERT_OK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  result = capture_graph(
      graph,
      [&](cudaStream_t stream) {
        cudaEventRecord(fork, stream);
        cudaStreamWaitEvent(other.get, fork);
        launch_wait(0, other.get); // never joined with the captured stream
        launch_wait(0, stream);
      },
      cold);
  EXPECT_EQ(result.status, CUDAQ_ERR_CUDA);
  EXPECT_EQ(result.cuda_error, cudaErrorStreamCaptureUnjoined) << result.text;
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  CUDA_EXPECT_OK(cudaStreamIsCapturing(other.get, &capturing));
  EXPECT_EQ(capturing, cudaStreamCaptureStatusNone);
  cudaEventDestroy(fork);
  expect_unspoilt();
}

TEST_F(GraphCapture, CapturesBesideAKernelThatDoesNotEnd) {
  manager_handle manager;
  const host_ring ring({8, 256, false}, CUDAQ_MEMORY_MAPPED);
  device_array<int> out(1);
  CUDA_ASSERT_OK(preload_other_kernel());
  gpu_dispatcher dispatcher(manager.get, setup_of(kFifo32, ring));
  ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
  EXPECT_TRUE(finishes_within(kStartLimit, "the captures", [&] {
    for (int n = 0; n < 10; ++n) {
      captured_graph graph;
      const graph_capture_result result =
          capture_graph(graph, [&](cudaStream_t stream) { return launch_other_kernel(out.get, stream); });
      EXPECT_EQ(result.status, CUDAQ_OK) << result.text;
      // Destroyed later, because the call may wait for the device.
      (void)graph.release();
    }
  }));
}

} // namespace
} // namespace cudaq::realtime::test
