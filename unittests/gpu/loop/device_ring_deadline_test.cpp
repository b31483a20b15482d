// SPDX-License-Identifier: Apache-2.0
// The deadline of device_ring.cuh at its boundary values, in a kernel that waits for an answer.
#include "unittests/gpu/support/gpu_test.h"

#include "cudaq/realtime/detail/base/flag_word.h"

namespace cudaq::realtime::test {
namespace {

class DeviceRingDeadline : public gpu_test {
protected:
  /// The state that the kernel's wait returns. The answer is published 50 ms after the launch, or never.
  static std::uint32_t state_after(std::uint64_t ns, bool answered) {
    const host_ring ring({4, 256, false}, CUDAQ_MEMORY_MAPPED);
    const device_array<std::uint32_t> found(1);
    const side_stream stream;
    CUDA_EXPECT_OK(launch_wait_for_answer(ring.ring, ring.shape().num_slots, ns, found.get, stream.get));
    if (answered) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      detail::store_release(ring.ring.tx_flags_host[0], std::uint64_t{4096}); // no error, and not in flight
    }
    const cudaError_t ended = stream.wait();
    if (ended != cudaSuccess) { // memory cannot be freed while the kernel waits
      std::fprintf(stderr, "the kernel waits on after its answer: %s; the process ends\n", cudaGetErrorName(ended));
      std::_Exit(1);
    }
    return found.download()[0];
  }
};

// Known failure 44.
TEST_F(DeviceRingDeadline, AHugeDurationWaitsForTheAnswer) {
  for (const std::uint64_t ns :
       {std::uint64_t{1} << 62, std::uint64_t{INT64_MAX}, std::uint64_t{INT64_MAX} + 1, UINT64_MAX - 1, UINT64_MAX})
    EXPECT_EQ(state_after(ns, true), 1u + CUDAQ_TX_READY) << ns;
}

TEST_F(DeviceRingDeadline, AShortDurationEndsWithoutAnAnswer) {
  for (const std::uint64_t ns : {0u, 1u, 1'000'000u})
    EXPECT_EQ(state_after(ns, false), 1u + CUDAQ_TX_EMPTY) << ns;
}

} // namespace
} // namespace cudaq::realtime::test
