// SPDX-License-Identifier: Apache-2.0
// Loading kernels with a limit, on a CUDA runtime without a GPU. unittests/gpu/qec/beside_other_kernels_test.cpp does
// it beside a kernel that runs.
#include "kernels/qec/kernel_loading.h"
#include "unittests/support/eventually.h"
#include "unittests/support/fake_cuda/fake_cuda.h"

#include <atomic>
#include <gtest/gtest.h>
#include <memory>
#include <thread>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace cudaq::qec::realtime::gpu {
namespace {

namespace fake_cuda = cudaq::realtime::test::fake_cuda;

class KernelLoading : public testing::Test {
protected:
  ~KernelLoading() override {
    EXPECT_EQ(fake_cuda::violations(), "");
    EXPECT_EQ(fake_cuda::clean_up(), 0);
  }
  static std::string refusal(const std::function<cudaError_t()> &load, std::chrono::milliseconds limit = kLoadLimit) {
#ifdef __SANITIZE_ADDRESS__
    const __lsan::ScopedDisabler stays_for_its_thread;
#endif
    try {
      load_kernels(1, "a stage", load, limit);
    } catch (const std::exception &e) {
      return e.what();
    }
    return "";
  }
};

TEST_F(KernelLoading, IsDoneOnTheDeviceAndDoesNotChangeTheCallersOne) {
  int device = -1, callers = -1;
  EXPECT_EQ(refusal([&] { return cudaGetDevice(&device); }), "");
  EXPECT_EQ(device, 1);
  EXPECT_EQ(cudaGetDevice(&callers), cudaSuccess);
  EXPECT_EQ(callers, 0);
}

TEST_F(KernelLoading, DoesNotDisturbTheCapturesOfOtherThreads) {
  auto mode = cudaStreamCaptureModeGlobal;
  EXPECT_EQ(refusal([&] {
              mode = fake_cuda::capture_mode();
              return cudaSuccess;
            }),
            "");
  EXPECT_EQ(mode, cudaStreamCaptureModeRelaxed);
}

TEST_F(KernelLoading, ReportsAnErrorAndAnException) {
  EXPECT_NE(refusal([] { return cudaErrorNoKernelImageForDevice; }).find("a stage: loading the kernels: "),
            std::string::npos);
  EXPECT_EQ(refusal([]() -> cudaError_t { throw std::runtime_error("no memory for the model"); }),
            "no memory for the model");
  EXPECT_THROW(load_kernels(1, "a stage", []() -> cudaError_t { throw 1; }), int);
}

TEST_F(KernelLoading, ThatTheDeviceDoesNotDoIsRefusedAndItsThreadEnds) {
  const auto held = std::make_shared<int>(0);
  fake_cuda::keeps_kernels_out() = true;
  const std::string text = refusal([held] { return cudaSuccess; }, std::chrono::milliseconds(20));
  EXPECT_NE(text.find("a stage: the device has not loaded the kernels in 20 ms"), std::string::npos) << text;
  EXPECT_TRUE(cudaq::realtime::test::eventually([&] { return held.use_count() == 1; }));
  fake_cuda::keeps_kernels_out() = false;
}

TEST_F(KernelLoading, ThatDoesNotEndIsRefusedAfterTheLimit) {
  struct gate {
    std::atomic<bool> open{false}, has_ended{false};
  };
  const auto kernels = std::make_shared<gate>(); // of others, that keep the device
  const std::string text = refusal(
      [kernels] {
        while (!kernels->open)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        kernels->has_ended = true;
        return cudaErrorUnknown; // what follows makes no further call of the runtime, which ends with the test
      },
      std::chrono::milliseconds(20));
  EXPECT_NE(text.find("a stage: the device has not loaded the kernels in 20 ms"), std::string::npos) << text;
  kernels->open = true;
  EXPECT_TRUE(cudaq::realtime::test::eventually([&] { return kernels->has_ended.load(); }));
}

} // namespace
} // namespace cudaq::qec::realtime::gpu
