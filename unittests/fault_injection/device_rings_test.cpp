// SPDX-License-Identifier: Apache-2.0
// Rings of a device on a CUDA runtime without a GPU, whose device memory the CPU can write: when the device is lost,
// when the process ends while a kernel serves them, and on machines that cannot make or serve requests in device
// memory: which are refused, the texts, and what AUTO makes instead.
#include "unittests/environment/child_process.h"
#include "unittests/fault_injection/served_ring.h"
#include "unittests/support/fake_cuda/endless_kernel.h"
#include "unittests/support/fault_points.h"
#include "unittests/support/sanitized.h"

#include <chrono>
#include <cstdlib>

namespace cudaq::realtime::test {
namespace {

/// A dispatcher that was refused, runs or has run: stops and frees all of it.
void end(const served_ring &s) {
  if (s.producer != nullptr) {
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_producer_close(s.producer));
  }
  CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(s.dispatcher));
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(s.memory));
  CUDAQ_EXPECT_OK(cudaq_dispatch_manager_destroy(s.manager));
  fake_cuda::release(s.words);
}

class LostDevice : public ::testing::Test {
protected:
  void TearDown() override {
    fake_cuda::lose_device(cudaSuccess);
    EXPECT_EQ(fake_cuda::violations(), "");
    EXPECT_EQ(fake_cuda::clean_up(), 0);
  }
  /// A destroy that fails keeps the ring: it can be repeated.
  static void expect_kept(cudaq_ringbuffer_memory_t *memory) {
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(cudaq_ringbuffer_destroy(memory), CUDAQ_ERR_CUDA);
      EXPECT_TRUE(error_names({"cudaq_ringbuffer_destroy"}));
    }
    cudaq_ringbuffer_info_t info{};
    info.struct_size = sizeof(info);
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_get_info(memory, &info));
  }
};

TEST_F(LostDevice, LeavesRingsThatCanBeReportedAndDestroyedLater) {
  if (!has_cuda_memory())
    GTEST_SKIP() << "this library was built without the CUDA runtime";
  for (const std::uint32_t kind : {CUDAQ_MEMORY_MAPPED, CUDAQ_MEMORY_DEVICE, CUDAQ_MEMORY_DEVICE_RX}) {
    cudaq_ringbuffer_memory_t *memory = nullptr, *other = nullptr;
    cudaq_ringbuffer_t ring{}, unused{};
    CUDAQ_ASSERT_OK(make_ring(kind, memory, ring));
    fake_cuda::lose_device(cudaErrorECCUncorrectable);
    expect_kept(memory);
    for (const std::uint32_t refused :
         {CUDAQ_MEMORY_MAPPED, CUDAQ_MEMORY_DEVICE, CUDAQ_MEMORY_DEVICE_RX, CUDAQ_MEMORY_AUTO}) {
      EXPECT_EQ(make_ring(refused, other, unused), CUDAQ_ERR_CUDA) << refused;
      EXPECT_EQ(other, nullptr);
    }
    CUDAQ_ASSERT_OK(make_ring(CUDAQ_MEMORY_HOST, other, unused)); // needs no device
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(other));
    fake_cuda::lose_device(cudaSuccess);
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(memory));
  }
}

TEST_F(LostDevice, EndsARunWithoutWaitingAndItsHandleCanBeClosed) {
  if (!has_device_path())
    GTEST_SKIP() << "this library was built without the CUDA runtime";
  served_ring s;
  CUDAQ_ASSERT_OK(s.start());
  fake_cuda::lose_device(cudaErrorLaunchFailure);
  CUDAQ_EXPECT_OK(s.send()); // the requests lie where the CPU can write them
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(cudaq_dispatcher_stop(s.dispatcher), CUDAQ_ERR_CUDA);
  EXPECT_TRUE(error_names({"cudaq_dispatcher_stop"}));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(s.dispatcher)); // the error is reported once
  CUDAQ_EXPECT_OK(cudaq_dispatch_manager_destroy(s.manager));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(30));
  EXPECT_EQ(cudaq_ringbuffer_destroy(s.memory), CUDAQ_ERR_STATE);
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_producer_close(s.producer));
  expect_kept(s.memory);
  EXPECT_TRUE(eventually(fake_cuda::idle));
  fake_cuda::lose_device(cudaSuccess);
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(s.memory));
  fake_cuda::release(s.words);
}

// The call does not wait for the kernel, which may never end.
// Known failure 53.
TEST_F(LostDevice, AKernelThatRunsKeepsItsRingUntilItIsStopped) {
  if (!has_device_path())
    GTEST_SKIP() << "this library was built without the CUDA runtime";
  for (const std::uint32_t kind : {CUDAQ_MEMORY_MAPPED, CUDAQ_MEMORY_DEVICE_RX})
    for (const bool lost : {false, true}) {
      served_ring s(kind);
      CUDAQ_ASSERT_OK(s.start());
      CUDAQ_ASSERT_OK(cudaq_ringbuffer_producer_close(s.producer));
      if (lost)
        fake_cuda::lose_device(cudaErrorLaunchFailure);
      s.expect_kept_by_the_dispatcher();
      EXPECT_EQ(cudaq_dispatcher_stop(s.dispatcher), lost ? CUDAQ_ERR_CUDA : CUDAQ_OK);
      if (lost) { // the ring is as before: of a device that comes back it can be served again
        expect_kept(s.memory);
        EXPECT_TRUE(eventually(fake_cuda::idle));
        fake_cuda::lose_device(cudaSuccess);
        CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(s.dispatcher)); // the fault is reported once
      }
      CUDAQ_ASSERT_OK(cudaq_dispatcher_start(s.dispatcher));
      s.expect_kept_by_the_dispatcher();
      CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(s.dispatcher));
      CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(s.memory));
      CUDAQ_EXPECT_OK(cudaq_dispatch_manager_destroy(s.manager));
      fake_cuda::release(s.words);
    }
}

// The destroy calls in the wrong order: each is refused, and the right one succeeds later.
TEST_F(LostDevice, ADeviceThatIsThereRefusesAWrongOrderOfDestroyCalls) {
  if (!has_device_path())
    GTEST_SKIP() << "this library was built without the CUDA runtime";
  served_ring s;
  CUDAQ_ASSERT_OK(s.start());
  EXPECT_EQ(cudaq_ringbuffer_destroy(s.memory), CUDAQ_ERR_STATE);
  EXPECT_EQ(cudaq_dispatch_manager_destroy(s.manager), CUDAQ_ERR_STATE);
  end(s);
}

// The destructors of the process run, while a kernel serves a ring on which a handle is open.
TEST(ProcessExit, WithARingThatAKernelServesNeitherHangsNorCrashes) {
  if (!has_device_path())
    GTEST_SKIP() << "this library was built without the CUDA runtime";
  if (kSanitized)
    GTEST_SKIP() << "the sanitizer looks for leaks at the end of the process, and the ring is left on purpose";
  CUDAQ_EXPECT_GOOD_CHILD([]() -> std::string {
    static served_ring s;
    if (s.start() != CUDAQ_OK)
      return last_error();
    std::exit(0);
  });
  CUDAQ_EXPECT_GOOD_CHILD([]() -> std::string { // on a thread that is not the main thread, while another one sends
    static served_ring s;
    if (s.start() != CUDAQ_OK)
      return last_error();
    std::thread([] {
      for (;;)
        (void)s.send();
    }).detach();
    std::thread([] { std::exit(0); }).join();
    return "exit has returned";
  });
}

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
  endless_kernel kernel;
  ASSERT_EQ(kernel.made, cudaSuccess);
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring{};
  faults::arm(1, 1, "cudaHostAlloc"); // the block for the answers, after the requests were mapped
  CUDAQ_EXPECT_OK(make_ring(CUDAQ_MEMORY_AUTO, memory, ring));
  EXPECT_EQ(faults::disarm(), 1u);
  EXPECT_EQ(info_of(memory).memory_kind, CUDAQ_MEMORY_MAPPED);
  EXPECT_EQ(fake_cuda::violations(), "");
  kernel.end();
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(memory));
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
