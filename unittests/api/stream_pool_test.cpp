// SPDX-License-Identifier: Apache-2.0
// reserve_streams, and when a manager calls it, with a device that only counts streams. unittests/gpu/graphs shows on a
// GPU what the reserved streams are for.
#include "cudaq/realtime/daemon/dispatcher/graph_capture.h"
#include "lib/api/manager.h"
#include "unittests/support/failing_calls.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

/// Two devices. `fail_at`: number of the stream that cannot be made.
struct counting_device {
  struct streams {
    long made = 0, live = 0, max_live = 0;
  };
  int current = 0;
  long fail_at = -1;
  unsigned other_flags = 0;
  streams of[2];
};
counting_device cuda;

} // namespace

extern "C" {
cudaError_t __wrap_cudaGetDevice(int *device) {
  *device = cuda.current;
  return cudaSuccess;
}
cudaError_t __wrap_cudaSetDevice(int device) {
  if (device < 0 || device > 1)
    return cudaErrorInvalidDevice;
  cuda.current = device;
  return cudaSuccess;
}
cudaError_t __wrap_cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *) { return cudaSuccess; }
cudaError_t __wrap_cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  counting_device::streams &here = cuda.of[cuda.current];
  if (here.made == cuda.fail_at)
    return cudaErrorNotPermitted;
  cuda.other_flags += flags != cudaStreamNonBlocking;
  *stream = reinterpret_cast<cudaStream_t>(++here.made);
  here.max_live = std::max(here.max_live, ++here.live);
  return cudaSuccess;
}
cudaError_t __wrap_cudaStreamDestroy(cudaStream_t stream) {
  cuda.of[cuda.current].live -= stream != nullptr;
  return cudaSuccess;
}
}

namespace cudaq::realtime::test {
namespace {

class ReserveStreams : public testing::Test {
protected:
  ReserveStreams() { cuda = {}; }
};

TEST_F(ReserveStreams, MakesThemAllBeforeItDestroysThem) {
  EXPECT_EQ(reserve_streams(100), cudaSuccess);
  EXPECT_EQ(cuda.of[0].made, 100);
  EXPECT_EQ(cuda.of[0].max_live, 100) << "streams that are not there at the same time share a place in the pool";
  EXPECT_EQ(cuda.of[0].live, 0);
  EXPECT_EQ(cuda.other_flags, 0u) << "each of them must not wait for the legacy stream";
}

TEST_F(ReserveStreams, MakesNoneIfNoneIsWanted) {
  EXPECT_EQ(reserve_streams(0), cudaSuccess);
  EXPECT_EQ(cuda.of[0].made, 0);
}

TEST_F(ReserveStreams, ReturnsTheFirstErrorAndDestroysWhatItHasMade) {
  cuda.fail_at = 7;
  EXPECT_EQ(reserve_streams(100), cudaErrorNotPermitted);
  EXPECT_EQ(cuda.of[0].made, 7);
  EXPECT_EQ(cuda.of[0].live, 0);
}

// Known failure 45.
TEST_F(ReserveStreams, WithoutMemoryItReturnsAnErrorAndDestroysWhatItHasMade) {
  long n = 0;
  for (bool failed = true; failed; ++n) {
    cuda = {};
    const failing_call one(fault::allocation, n);
    const cudaError_t result = reserve_streams(100);
    failed = one.happened();
    EXPECT_EQ(result, failed ? cudaErrorMemoryAllocation : cudaSuccess) << n;
    EXPECT_EQ(cuda.of[0].live, 0);
    ASSERT_LT(n, 100);
  }
  EXPECT_GE(n, 2) << "nothing was tested";
}

class GrowStreamPool : public ReserveStreams {
protected:
  cudaq_dispatch_manager_t manager;
};

TEST_F(GrowStreamPool, GrowsItOncePerDeviceAndKeepsTheCurrentDevice) {
  manager.grow_stream_pool(1);
  EXPECT_EQ(cuda.current, 0);
  EXPECT_EQ(cuda.of[0].made, 0);
  EXPECT_GE(cuda.of[1].max_live, 128);
  const long made = cuda.of[1].made;
  manager.grow_stream_pool(1);
  EXPECT_EQ(cuda.of[1].made, made) << "a second graph dispatcher of the device";
  manager.grow_stream_pool(0);
  EXPECT_GE(cuda.of[0].max_live, 128);
  EXPECT_EQ(cuda.of[0].live + cuda.of[1].live, 0);
}

TEST_F(GrowStreamPool, WaitsForNoKernelOfItsManager) {
  const int a_dispatcher = 0;
  manager.add_resident(&a_dispatcher, 0, 4);
  manager.grow_stream_pool(0);
  EXPECT_EQ(cuda.of[0].made, 0) << "making streams would wait for that kernel";
  manager.grow_stream_pool(1);
  EXPECT_NE(cuda.of[1].made, 0) << "it runs on another device";
  manager.remove_resident(&a_dispatcher);
  manager.grow_stream_pool(0);
  EXPECT_NE(cuda.of[0].made, 0);
}

TEST_F(GrowStreamPool, WaitsForNoKernelThatTheCallerHasDeclared) {
  ASSERT_EQ(cudaq_dispatch_manager_reserve_blocks(&manager, 0, 8), CUDAQ_OK);
  manager.grow_stream_pool(0);
  EXPECT_EQ(cuda.of[0].made, 0);
  ASSERT_EQ(cudaq_dispatch_manager_reserve_blocks(&manager, 0, 0), CUDAQ_OK);
  manager.grow_stream_pool(0);
  EXPECT_NE(cuda.of[0].made, 0);
}

TEST_F(GrowStreamPool, IgnoresErrorsOfTheDevice) {
  EXPECT_NO_THROW(manager.grow_stream_pool(7)) << "start reports a device that does not exist";
  EXPECT_EQ(cuda.of[0].made + cuda.of[1].made, 0);
  EXPECT_EQ(cuda.current, 0);
  cuda.fail_at = 3;
  EXPECT_NO_THROW(manager.grow_stream_pool(0));
  EXPECT_EQ(cuda.of[0].live, 0);
}

} // namespace
} // namespace cudaq::realtime::test
