// SPDX-License-Identifier: Apache-2.0
// Launches that fail, graphs that fault, memory that no graph can use. After a fault the process cannot use the device
// any more: one process per test.
#include "unittests/gpu/graphs/host_graph_rig.h"

namespace cudaq::realtime::test {
namespace {

class GraphFault : public gpu_test {
protected:
  static void send(const host_ring &ring, std::uint32_t slot, std::uint32_t function_id, std::uint64_t payload) {
    CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_write_rpc_request(&ring.ring, slot, function_id, &payload, sizeof(payload),
                                                            slot + 100, 0));
    cudaq_host_ringbuffer_signal_slot(&ring.ring, slot);
  }
  static cudaq_tx_status_t tx_status(const host_ring &ring, std::uint32_t slot, int *error = nullptr) {
    return cudaq_host_ringbuffer_poll_tx_flag(&ring.ring, slot, error);
  }
  static std::int32_t status_of(const host_ring &ring, std::uint32_t slot) {
    cudaq_rpc_response_t header{};
    const void *result = nullptr;
    CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_read_rpc_response(&ring.ring, slot, &header, &result));
    return header.status;
  }
};

/// Leaves the stream in a failed capture, so that no further launch on it succeeds.
void spoil_stream(void *user, void *, cudaStream_t stream) {
  auto &left = *static_cast<int *>(user);
  if (left-- <= 0)
    return;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  cudaStreamSynchronize(stream);
  cudaGetLastError();
}

// Known failure 7.
TEST_F(GraphFault, ALaunchErrorFailsItsOwnRequestAndTheWorkerIsMadeAnew) {
  for (const bool markers : {true, false}) {
    const host_ring ring({8, 128, false}, CUDAQ_MEMORY_MAPPED);
    graph_plan plan;
    plan.shape = ring.shape();
    plan.markers = markers;
    plan.workers = {{}, {1}};
    graph_rig rig(ring, plan);
    int spoil = 1;
    rig.workers[0].pre_launch_fn = spoil_stream;
    rig.workers[0].pre_launch_data = &spoil;
    ASSERT_NO_FATAL_FAILURE(rig.expect_start());
    send(ring, 0, 1, 5);
    send(ring, 1, 2, 5);
    int error = 0;
    ASSERT_TRUE(eventually([&] { return tx_status(ring, 0, &error) > CUDAQ_TX_IN_FLIGHT; })) << rig.dispatcher->dump();
    if (markers) {
      EXPECT_EQ(tx_status(ring, 0, &error), CUDAQ_TX_ERROR);
      EXPECT_NE(error, 0);
      std::printf("the launch: %s\n", cudaGetErrorName(static_cast<cudaError_t>(error)));
    } else {
      EXPECT_EQ(status_of(ring, 0), CUDAQ_RPC_ERR_LAUNCH_FAILED);
    }
    ASSERT_TRUE(eventually([&] { return tx_status(ring, 1) == CUDAQ_TX_READY; }))
        << "the other worker must still answer";
    EXPECT_EQ(rig.dispatcher->state(), CUDAQ_DISPATCHER_RUNNING);
    send(ring, 2, 1, 5);
    ASSERT_TRUE(eventually([&] { return tx_status(ring, 2) > CUDAQ_TX_IN_FLIGHT; })) << rig.dispatcher->dump();
    EXPECT_EQ(tx_status(ring, 2), CUDAQ_TX_READY) << "the same worker must answer, on a stream that works";
    EXPECT_EQ(rig.dispatcher->stats().protocol_errors[CUDAQ_RPC_ERROR_INDEX(CUDAQ_RPC_ERR_LAUNCH_FAILED)], 1u);
  }
}

// Known failure 17.
TEST_F(GraphFault, AHookThatThrowsFailsItsRequestOnlyBeforeTheLaunch) {
  const host_ring ring({8, 128, false}, CUDAQ_MEMORY_MAPPED);
  graph_plan plan;
  plan.shape = ring.shape();
  plan.workers = {{}, {1}};
  graph_rig rig(ring, plan);
  rig.workers[0].pre_launch_fn = [](void *, void *, cudaStream_t) { throw 1; };
  rig.workers[1].post_launch_fn = [](void *, void *, cudaStream_t) { throw 1; };
  ASSERT_NO_FATAL_FAILURE(rig.expect_start());
  send(ring, 0, 1, 5);
  send(ring, 1, 2, 5);
  ASSERT_TRUE(eventually([&] { return tx_status(ring, 0) == CUDAQ_TX_ERROR; }));
  ASSERT_TRUE(eventually([&] { return tx_status(ring, 1) == CUDAQ_TX_READY; }))
      << "the graph must run although the hook threw";
  EXPECT_EQ(status_of(ring, 1), 0);
  EXPECT_EQ(rig.dispatcher->stats().hook_failures, 2u);
}

TEST_F(GraphFault, StartRefusesARingThatNoGraphCanRead) {
  host_ring ring({8, 128, false}, CUDAQ_MEMORY_MAPPED);
  int pageable = 0;
  CUDA_EXPECT_OK(cudaDeviceGetAttribute(&pageable, cudaDevAttrPageableMemoryAccess, test_device()));
  // A device that can read any host memory accepts this ring: start refuses nothing.
  const cudaq_status_t expected = pageable != 0 ? CUDAQ_OK : CUDAQ_ERR_INVALID_ARG;
  std::vector<std::uint64_t> plain(8 * 128 / 8);
  const cudaq_ringbuffer_t good = ring.ring;
  ring.ring.rx_data = reinterpret_cast<std::uint8_t *>(plain.data());
  graph_plan plan;
  plan.shape = ring.shape();
  plan.workers = {{}};
  {
    graph_rig rig(ring, plan);
    const call_result refused = rig.start();
    EXPECT_EQ(refused.status, expected);
    EXPECT_TRUE(pageable != 0 || refused.text.find("ringbuffer->rx_data") != std::string::npos) << refused.text;
  }
  ring.ring = good;
  graph_rig rig(ring, plan);
  GraphIOContext on_the_heap{};
  void *const mapped = std::exchange(rig.workers[0].io_ctx, &on_the_heap);
  const call_result refused = rig.start();
  EXPECT_EQ(refused.status, expected);
  EXPECT_TRUE(pageable != 0 || refused.text.find("workers[0].io_ctx") != std::string::npos) << refused.text;
  CUDAQ_EXPECT_OK_WITHIN(kStartLimit, cudaq_dispatcher_stop(rig.dispatcher->get));
  rig.workers[0].io_ctx = mapped;
  ASSERT_NO_FATAL_FAILURE(rig.expect_start());
}

class GraphTrap : public GraphFault, public ::testing::WithParamInterface<std::uint32_t> {};

// Known failure 9.
TEST_P(GraphTrap, ATrapFailsWhatIsPendingAndWhatComesAndStopReturns) {
  auto *ring = new host_ring({8, 128, false}, CUDAQ_MEMORY_MAPPED); // after a fault nothing can be freed
  graph_plan plan;
  plan.shape = ring->shape();
  plan.when_busy = CUDAQ_BUSY_WORKERS_PASS_FUNCTION;
  plan.workers = {{}, {1}, {2}};
  plan.workers[0].traps = true;
  plan.workers[0].delay_ns = 200'000'000; // the others are pending when the fault comes
  plan.workers[1].delay_ns = plan.workers[2].delay_ns = 1'000'000'000;
  plan.workers[1].completion = GetParam();
  auto *rig = new graph_rig(*ring, plan);
  rig->fault_expected = true;
  ASSERT_NO_FATAL_FAILURE(rig->expect_start());
  send(*ring, 0, 1, kTrapWord);
  send(*ring, 1, 2, 5);
  send(*ring, 2, 3, 5);
  send(*ring, 3, 3, 5); // waits for a worker
  ASSERT_TRUE(eventually([&] { return rig->dispatcher->stats().dispatched == 4; }));
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint32_t slot = 0; slot < 4; ++slot) {
    int error = 0;
    ASSERT_TRUE(eventually([&] { return tx_status(*ring, slot, &error) > CUDAQ_TX_IN_FLIGHT; }))
        << rig->dispatcher->dump();
    EXPECT_EQ(tx_status(*ring, slot, &error), CUDAQ_TX_ERROR) << slot;
    EXPECT_NE(error, 0) << slot;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1200))
      << "this includes a delay of 200 ms";
  EXPECT_EQ(rig->dispatcher->state(), CUDAQ_DISPATCHER_FAILED);
  const auto later = std::chrono::steady_clock::now();
  send(*ring, 4, 2, 5);
  ASSERT_TRUE(eventually([&] { return tx_status(*ring, 4) == CUDAQ_TX_ERROR; }));
  EXPECT_LT(std::chrono::steady_clock::now() - later, std::chrono::milliseconds(100));
  const call_result stopped = CUDAQ_RESULT_WITHIN(kOneSecond, cudaq_dispatcher_stop(rig->dispatcher->get));
  EXPECT_EQ(stopped.status, CUDAQ_ERR_CUDA);
  EXPECT_NE(stopped.text.find("cudaError"), std::string::npos) << stopped.text;
  EXPECT_NE(CUDAQ_RESULT_WITHIN(kOneSecond, cudaq_dispatcher_start(rig->dispatcher->get)).status, CUDAQ_OK);
  EXPECT_EQ(rig->dispatcher->stats().in_flight, 0u);
  rig->end_stage();
}

std::string name_of_completion(const ::testing::TestParamInfo<std::uint32_t> &tested) {
  return tested.param == CUDAQ_WORKER_LIBRARY_PUBLISHES ? "Library"
         : tested.param == CUDAQ_WORKER_GRAPH_PUBLISHES ? "Graph"
                                                        : "Caller";
}

INSTANTIATE_TEST_SUITE_P(Completions, GraphTrap,
                         ::testing::Values(CUDAQ_WORKER_LIBRARY_PUBLISHES, CUDAQ_WORKER_GRAPH_PUBLISHES,
                                           CUDAQ_WORKER_CALLER_PUBLISHES),
                         name_of_completion);

} // namespace
} // namespace cudaq::realtime::test
