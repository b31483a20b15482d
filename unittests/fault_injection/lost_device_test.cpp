// SPDX-License-Identifier: Apache-2.0
// Rings when their device is lost, and when the process ends while a kernel serves them: on a CUDA runtime without a
// GPU, whose device memory the CPU can write.
#include "unittests/environment/child_process.h"
#include "unittests/fault_injection/served_ring.h"
#include "unittests/support/sanitized.h"

#include <cstdlib>

namespace cudaq::realtime::test {
namespace {

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
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_producer_close(s.producer)); // before the dispatcher's end
  CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(s.dispatcher));      // stops it
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(s.memory));
  CUDAQ_EXPECT_OK(cudaq_dispatch_manager_destroy(s.manager));
  fake_cuda::release(s.words);
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

} // namespace
} // namespace cudaq::realtime::test
