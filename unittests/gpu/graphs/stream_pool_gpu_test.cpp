// SPDX-License-Identifier: Apache-2.0
// The driver's pool of streams grows only while nothing runs on the device. Each test needs a process of its own: a
// pool that has grown stays so.
#include "cudaq/realtime/daemon/dispatcher/graph_capture.h"

#include "unittests/gpu/graphs/host_graphs.h"
#include "unittests/gpu/support/gpu_test.h"

namespace cudaq::realtime::test {
namespace {

class StreamPool : public gpu_test {
protected:
  static constexpr std::size_t kStreams = 100;          // the pool has about 35 at first
  static constexpr std::uint64_t kBusy = 4'000'000'000; // ns

  /// While a kernel runs that takes kBusy, `kStreams` streams are made before it ends.
  static void expect_room() {
    CUDA_ASSERT_OK(launch_wait(0, nullptr)); // loads the kernel
    CUDA_ASSERT_OK(cudaDeviceSynchronize());
    const side_stream busy;
    CUDA_ASSERT_OK(launch_wait(kBusy, busy.get));
    std::vector<cudaStream_t> streams(kStreams);
    EXPECT_TRUE(finishes_within(std::chrono::seconds(2), "making streams", [&] {
      for (cudaStream_t &stream : streams)
        CUDA_EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    })) << "a call has waited for the kernel";
    EXPECT_EQ(cudaStreamQuery(busy.get), cudaErrorNotReady) << "the kernel ended early, so nothing was shown";
    CUDA_EXPECT_OK(busy.wait());
    for (const cudaStream_t stream : streams)
      CUDA_EXPECT_OK(cudaStreamDestroy(stream));
  }
};

TEST_F(StreamPool, HasRoomForReservedStreamsWhileAKernelRuns) {
  CUDA_ASSERT_OK(reserve_streams(kStreams + 2));
  expect_room();
}

TEST_F(StreamPool, HasRoomAfterAGraphDispatcherWasCreated) {
  cudaq_dispatch_manager_t *manager = nullptr;
  ASSERT_EQ(cudaq_dispatch_manager_create(&manager), CUDAQ_OK) << cudaq_last_error_message();
  cudaq_dispatcher_config_t config{};
  config.device_id = device_now();
  config.dispatch_path = CUDAQ_DISPATCH_PATH_DEVICE;
  config.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
  config.num_slots = 4;
  config.slot_size = 256;
  cudaq_dispatcher_t *dispatcher = nullptr;
  ASSERT_EQ(cudaq_dispatcher_create(manager, &config, &dispatcher), CUDAQ_OK) << cudaq_last_error_message();
  expect_room();
  EXPECT_EQ(cudaq_dispatcher_destroy(dispatcher), CUDAQ_OK);
  EXPECT_EQ(cudaq_dispatch_manager_destroy(manager), CUDAQ_OK);
}

} // namespace
} // namespace cudaq::realtime::test
