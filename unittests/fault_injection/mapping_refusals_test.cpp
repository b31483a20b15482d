// SPDX-License-Identifier: Apache-2.0
// Rings with requests in device memory on machines that cannot make or serve them: which are refused, the texts, and
// what AUTO makes instead. On a CUDA runtime without a GPU.
#include "unittests/fault_injection/served_ring.h"
#include "unittests/support/fault_points.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace cudaq::realtime::test {
namespace {

class MappingRefusals : public ::testing::Test {
protected:
  void SetUp() override {
    if (!has_device_path())
      GTEST_SKIP() << "this library was built without the CUDA runtime";
  }
  void TearDown() override {
    EXPECT_EQ(fake_cuda::violations(), "");
    EXPECT_EQ(fake_cuda::clean_up(), 0);
  }
  static void expect_refused(const std::vector<std::string> &words, bool nic = false) {
    cudaq_ringbuffer_options_t o;
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_options_init(&o, sizeof(o)));
    o.memory_kind = CUDAQ_MEMORY_DEVICE_RX;
    o.num_slots = kServedSlots;
    o.slot_size = 64;
    o.nic_registration = nic;
    cudaq_ringbuffer_memory_t *memory = nullptr;
    cudaq_ringbuffer_t ring{};
    EXPECT_EQ(cudaq_ringbuffer_create(&o, &memory, &ring), CUDAQ_ERR_UNSUPPORTED);
    EXPECT_TRUE(error_names(words));
    EXPECT_EQ(memory, nullptr);
  }
  static void expect_auto_makes_mapped_memory(const std::vector<std::string> &words) {
    cudaq_ringbuffer_memory_t *memory = nullptr;
    cudaq_ringbuffer_t ring{};
    CUDAQ_ASSERT_OK(make_ring(CUDAQ_MEMORY_AUTO, memory, ring));
    const cudaq_ringbuffer_info_t info = info_of(memory);
    EXPECT_EQ(info.memory_kind, CUDAQ_MEMORY_MAPPED);
    EXPECT_EQ(info.mapping_source, CUDAQ_MAPPING_NONE);
    EXPECT_EQ(info.writes_ordering, 0u);
    EXPECT_EQ(std::string(info.reason).find("mapped memory, because "), 0u) << info.reason;
    for (const std::string &word : words)
      EXPECT_NE(std::string(info.reason).find(word), std::string::npos) << word << " is not in: " << info.reason;
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(memory));
  }
  static cudaq_ringbuffer_info_t info_of(const cudaq_ringbuffer_memory_t *memory) {
    cudaq_ringbuffer_info_t info{};
    info.struct_size = sizeof(info);
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_get_info(memory, &info));
    return info;
  }
};

TEST_F(MappingRefusals, ADeviceThatDoesNotOrderWritesIsRefused) {
  fake_cuda::mapping().writes_ordering = cudaGPUDirectRDMAWritesOrderingNone;
  expect_refused({"device 0 does not order writes from outside", "cudaDevAttrGPUDirectRDMAWritesOrdering is 0",
                  "needed is 100 or more"});
  expect_auto_makes_mapped_memory({"does not order writes from outside"});
}

TEST_F(MappingRefusals, TheRefusalNamesTheReasonOfEachWay) {
  for (const char *name : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}) // else drivers of this machine are loaded
    setenv(name, "/nonexistent.json", 1);
  const std::vector<std::string> coherent = {"coherent memory: the CPU cannot access memory of this device directly"};
  const std::vector<std::string> others = {"no way to map memory of device 0", "GDRCopy: ", "Vulkan: "};
  fake_cuda::mapping().coherent = false;
  expect_refused(coherent);
  expect_refused(others);
  expect_auto_makes_mapped_memory(coherent);
  expect_auto_makes_mapped_memory(others);
  fake_cuda::mapping().coherent = true;
  expect_refused({"coherent memory: managed memory cannot be registered with a NIC", "GDRCopy: ", "Vulkan: "}, true);
}

TEST_F(MappingRefusals, AMachineThatCanMakeThemSaysHow) {
  fake_cuda::mapping().writes_ordering = cudaGPUDirectRDMAWritesOrderingAllDevices;
  for (const std::uint32_t kind : {CUDAQ_MEMORY_DEVICE_RX, CUDAQ_MEMORY_AUTO}) {
    cudaq_ringbuffer_memory_t *memory = nullptr;
    cudaq_ringbuffer_t ring{};
    CUDAQ_ASSERT_OK(make_ring(kind, memory, ring));
    const cudaq_ringbuffer_info_t info = info_of(memory);
    EXPECT_EQ(info.memory_kind, CUDAQ_MEMORY_DEVICE_RX);
    EXPECT_EQ(info.mapping_source, CUDAQ_MAPPING_COHERENT);
    EXPECT_EQ(info.writes_ordering, 200u);
    EXPECT_STREQ(info.reason, "mapping by coherent memory");
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(memory));
  }
}

// Freeing memory waits for all kernels of the device.
TEST_F(MappingRefusals, AutoFallsBackBesideAKernelThatRuns) {
  std::atomic<bool> ends{false};
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  fake_cuda::launch(stream, [&] {
    while (!ends)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring{};
  faults::arm(1, 1, "cudaHostAlloc"); // the block for the answers, after the requests were mapped
  CUDAQ_EXPECT_OK(make_ring(CUDAQ_MEMORY_AUTO, memory, ring));
  EXPECT_EQ(faults::disarm(), 1u);
  EXPECT_EQ(info_of(memory).memory_kind, CUDAQ_MEMORY_MAPPED);
  EXPECT_EQ(fake_cuda::violations(), "");
  ends = true;
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(memory));
  cudaStreamDestroy(stream);
}

/// A dispatcher that was refused or has run: frees all of it.
void end(const served_ring &s) {
  if (s.producer != nullptr) {
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_producer_close(s.producer));
  }
  CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(s.dispatcher));
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(s.memory));
  CUDAQ_EXPECT_OK(cudaq_dispatch_manager_destroy(s.manager));
  fake_cuda::release(s.words);
}

TEST_F(MappingRefusals, ADispatcherOfAnotherDeviceIsRefused) {
  for (const cudaMemoryType kind : {cudaMemoryTypeManaged, cudaMemoryTypeDevice})
    for (const int device : {0, 1}) {
      fake_cuda::mapping().kind = kind;
      served_ring s;
      s.device = device;
      s.ring_device = 1;
      const cudaq_status_t status = s.start();
      if (device == 1) {
        EXPECT_EQ(status, CUDAQ_OK) << cudaq_last_error_message();
      } else {
        EXPECT_EQ(status, CUDAQ_ERR_UNSUPPORTED);
        EXPECT_TRUE(error_names({"requests are in the memory of device 1", "config->device_id is 0"}));
      }
      end(s);
    }
}

// The laps are in host memory, and the CPU writes the requests: the promise of the caller cannot hold.
TEST_F(MappingRefusals, PeersOnTheSameDeviceDoNotNarrowTheScopeOfSuchARing) {
  fake_cuda::mapping().kind = cudaMemoryTypeDevice;
  served_ring s;
  s.ring_peers = CUDAQ_RING_PEERS_SAME_DEVICE;
  CUDAQ_EXPECT_OK(s.start());
  EXPECT_FALSE(device_scope);
  end(s);
}

TEST_F(MappingRefusals, PeersOnTheSameDeviceNarrowTheScopeOfARingInItsMemory) {
  served_ring s(CUDAQ_MEMORY_DEVICE);
  s.ring_peers = CUDAQ_RING_PEERS_SAME_DEVICE;
  EXPECT_EQ(s.start(), CUDAQ_OK) << cudaq_last_error_message();
  EXPECT_TRUE(device_scope);
  end(s);
}

} // namespace
} // namespace cudaq::realtime::test
