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

// Known failure 10.
TEST_F(SecondDeviceOnly, AGraphDispatcherMakesNoContextOnTheFirst) {
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

/// A program that never chooses a device: for its threads the current device is the first.
// Known failure 10.
TEST(NoDeviceChosen, RingsOfTheSecondDeviceMakeNoContextOnTheFirst) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < 2) {
    const char *required = std::getenv("CUDAQ_REQUIRE_GPU");
    ASSERT_TRUE(required == nullptr || std::atoi(required) < 2) << "found " << devices << " CUDA device(s)";
    GTEST_SKIP() << "needs 2 CUDA device(s), found " << devices;
  }
  std::thread([] {
    ASSERT_FALSE(has_context(kFirst) || has_context(kSecond)) << "something before the test has used a device";
    for (const std::uint32_t kind : {CUDAQ_MEMORY_MAPPED, CUDAQ_MEMORY_DEVICE}) {
      cudaq_ringbuffer_options_t options{};
      CUDAQ_ASSERT_OK(cudaq_ringbuffer_options_init(&options, sizeof(options)));
      options.memory_kind = kind, options.device_id = kSecond, options.num_slots = 4, options.slot_size = 128;
      cudaq_ringbuffer_memory_t *memory = nullptr;
      cudaq_ringbuffer_t ring{};
      CUDAQ_ASSERT_OK(cudaq_ringbuffer_create(&options, &memory, &ring));
      EXPECT_FALSE(has_context(kFirst));
      EXPECT_TRUE(has_context(kSecond)) << "the memory of the ring was freed with its context";
      std::thread([&] { // the memory is still there
        CUDA_EXPECT_OK(cudaSetDevice(kSecond));
        std::uint64_t first_flag = 1;
        CUDA_EXPECT_OK(cudaMemcpy(&first_flag, const_cast<std::uint64_t *>(ring.rx_flags), 8, cudaMemcpyDefault));
        EXPECT_EQ(first_flag, 0u);
      })
          .join();
      CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(memory));
    }
    EXPECT_EQ(device_now(), kFirst);
    EXPECT_FALSE(has_context(kFirst));
  }).join();
}

} // namespace
} // namespace cudaq::realtime::test
