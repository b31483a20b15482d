// SPDX-License-Identifier: Apache-2.0
// A program that uses the second GPU only. A new thread's current device is the first GPU, and cudaSetDevice makes a
// context there: it takes half a second in a stop, and memory.
#include "unittests/gpu/graphs/host_graph_rig.h"

#include <cuda.h>
#include <thread>

namespace cudaq::realtime::test {
namespace {

constexpr int kFirst = 0, kSecond = 1;

bool has_context(int device) {
  void *symbol = nullptr;
  cudaDriverEntryPointQueryResult found{};
  CUDA_EXPECT_OK(
      cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &symbol, 12000, cudaEnableDefault, &found));
  if (symbol == nullptr)
    return true;
  unsigned int flags = 0;
  int active = 1;
  EXPECT_EQ(reinterpret_cast<decltype(&cuDevicePrimaryCtxGetState)>(symbol)(device, &flags, &active), CUDA_SUCCESS);
  return active != 0;
}

class SecondDeviceOnly : public gpu_test {
protected:
  SecondDeviceOnly() : gpu_test(2, kSecond) {}
};

TEST_F(SecondDeviceOnly, Row10_AGraphDispatcherMakesNoContextOnTheFirst) {
  ASSERT_FALSE(has_context(kFirst)) << "something before the test has used the device";
  const host_ring ring({16, 256, false}, CUDAQ_MEMORY_MAPPED, kSecond);
  graph_plan plan;
  plan.workers = {graph_worker_plan{}};
  graph_rig rig(ring, plan);
  ASSERT_NO_FATAL_FAILURE(rig.expect_start());
  for (std::uint32_t slot = 0; slot < 16; ++slot) {
    CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_write_rpc_request(&ring.ring, slot, 1, "8 bytes", 8, slot, 0));
    cudaq_host_ringbuffer_signal_slot(&ring.ring, slot);
  }
  for (std::uint32_t slot = 0; slot < 16; ++slot)
    EXPECT_TRUE(
        eventually([&] { return cudaq_host_ringbuffer_poll_tx_flag(&ring.ring, slot, nullptr) == CUDAQ_TX_READY; }));
  std::thread([&] { // its current device is the first
    EXPECT_EQ(device_now(), kFirst);
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(rig.dispatcher->get));
    EXPECT_EQ(device_now(), kFirst);
  })
      .join();
  EXPECT_FALSE(has_context(kFirst));
  EXPECT_EQ(device_now(), kSecond);
}

} // namespace
} // namespace cudaq::realtime::test
