// SPDX-License-Identifier: Apache-2.0
// The base of every GPU test: a device or the reason for a skip, kernel kinds, calls with a deadline.
#pragma once

#include "unittests/gpu/support/handlers.h"
#include "unittests/support/host_fixture.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime_api.h>
#include <ostream>

namespace cudaq::realtime::test {

#define CUDA_EXPECT_OK(call) EXPECT_STREQ(cudaGetErrorName(call), "cudaSuccess")
#define CUDA_ASSERT_OK(call) ASSERT_STREQ(cudaGetErrorName(call), "cudaSuccess")

/// The current device.
inline int device_now() {
  int device = -1;
  CUDA_EXPECT_OK(cudaGetDevice(&device));
  return device;
}

/// Skips the test if there are fewer than `devices_needed` devices. If the environment variable CUDAQ_REQUIRE_GPU is n,
/// a test that needs n devices or fewer fails instead. Makes `current` the current device.
class gpu_test : public ::testing::Test {
protected:
  explicit gpu_test(int devices_needed = 1, int current = test_device())
      : devices_needed_(devices_needed), current_(current) {
    cudaSetDevice(current_); // before the members of a fixture are made; SetUp reports the error
  }

  void SetUp() override {
    int devices = 0;
    const cudaError_t error = cudaGetDeviceCount(&devices);
    const int enough = std::max(devices_needed_, test_device() + 1);
    if (error == cudaSuccess && devices >= enough) {
      CUDA_ASSERT_OK(cudaSetDevice(current_));
      prepare();
      return;
    }
    const std::string why = "needs " + std::to_string(enough) + " CUDA device(s), found " + std::to_string(devices) +
                            " (" + cudaGetErrorName(error) + ")";
    const char *required = std::getenv("CUDAQ_REQUIRE_GPU");
    if (required != nullptr && std::atoi(required) >= enough)
      FAIL() << why;
    GTEST_SKIP() << why;
  }
  /// What a test prepares on its device. Not called for a test that is skipped.
  virtual void prepare() {}
  /// For `prepare`. Skips the test on a device that has no device graphs.
  void need_device_graphs() {
    int major = 0;
    CUDA_ASSERT_OK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, current_));
    if (major < 9)
      GTEST_SKIP() << "device graphs need compute capability 9.0, this device has " << major << ".x";
  }

private:
  const int devices_needed_, current_;
};

/// A kernel and how it is launched.
struct kernel_kind {
  const char *name;
  cudaq_kernel_type_t type;
  std::uint32_t blocks, threads;
  std::uint32_t ordering = CUDAQ_ORDERING_FIFO;

  bool cooperative() const { return type == CUDAQ_KERNEL_COOPERATIVE; }
  bool unified() const { return type == CUDAQ_KERNEL_UNIFIED; }
  bool fifo() const { return ordering == CUDAQ_ORDERING_FIFO; }
};
inline void PrintTo(const kernel_kind &kind, std::ostream *out) { *out << kind.name; }
inline std::string name_of_kind(const ::testing::TestParamInfo<kernel_kind> &tested) { return tested.param.name; }

inline constexpr kernel_kind kFifo32{"Fifo32", CUDAQ_KERNEL_REGULAR, 1, 32};
inline constexpr kernel_kind kFifo128{"Fifo128", CUDAQ_KERNEL_REGULAR, 1, 128};
inline constexpr kernel_kind kFifo256{"Fifo256", CUDAQ_KERNEL_REGULAR, 1, 256};
inline constexpr kernel_kind kFifo512{"Fifo512", CUDAQ_KERNEL_REGULAR, 1, 512};
inline constexpr kernel_kind kFifo2x64{"Fifo2x64", CUDAQ_KERNEL_REGULAR, 2, 64}; // the second block has nothing to do
inline constexpr kernel_kind kAny4x64{"Any4x64", CUDAQ_KERNEL_REGULAR, 4, 64, CUDAQ_ORDERING_ANY};
inline constexpr kernel_kind kCooperative1x128{"Cooperative1x128", CUDAQ_KERNEL_COOPERATIVE, 1, 128};
inline constexpr kernel_kind kCooperative4x64{"Cooperative4x64", CUDAQ_KERNEL_COOPERATIVE, 4, 64};
inline constexpr kernel_kind kUnified{"Unified", CUDAQ_KERNEL_UNIFIED, 1, 32};

/// each_kind(): one kernel of each kind. every_launch(): also all launch sizes.
inline std::vector<kernel_kind> each_kind() {
  return {kFifo32, kAny4x64, kCooperative1x128, kCooperative4x64, kUnified};
}
inline std::vector<kernel_kind> every_launch() {
  return {kFifo32, kFifo128, kFifo256, kFifo512, kFifo2x64, kAny4x64, kCooperative1x128, kCooperative4x64, kUnified};
}

/// The result of a call of the C API.
struct call_result {
  cudaq_status_t status = CUDAQ_ERR_INTERNAL;
  std::string text; ///< the error text if the call failed
};

/// Runs `body` on a new thread, with the caller's device current. Returns false if it takes longer than `limit`. If it
/// does not return within kDeadline after that, the process and its kernels are ended.
template <class Body>
bool finishes_within(std::chrono::nanoseconds limit, const char *what, Body &&body) {
  const int device = device_now();
  std::atomic<bool> done{false};
  std::thread caller([&] {
    cudaSetDevice(device);
    body();
    done.store(true);
  });
  const bool in_time = eventually([&] { return done.load(); }, limit);
  if (!in_time && !eventually([&] { return done.load(); })) {
    std::fprintf(stderr, "%s hangs; the process ends\n", what);
    std::_Exit(1);
  }
  caller.join();
  return in_time;
}

/// finishes_within() for a call of the C API. The test fails if the call is late.
template <class Call>
call_result call_within(std::chrono::nanoseconds limit, const char *what, Call &&call) {
  call_result result;
  EXPECT_TRUE(finishes_within(limit, what,
                              [&] {
                                result.status = call();
                                if (result.status != CUDAQ_OK)
                                  result.text = cudaq_last_error_message();
                              }))
      << what << " took longer than " << std::chrono::duration<double>(limit).count() << " s";
  return result;
}

#define CUDAQ_RESULT_WITHIN(limit, call) call_within((limit), #call, [&] { return (call); })
#define CUDAQ_EXPECT_OK_WITHIN(limit, call)                                                                            \
  do {                                                                                                                 \
    const call_result result_of_call = CUDAQ_RESULT_WITHIN(limit, call);                                               \
    EXPECT_EQ(result_of_call.status, CUDAQ_OK) << result_of_call.text;                                                 \
  } while (false)

inline constexpr auto kOneSecond = std::chrono::seconds(1);
inline constexpr auto kStartLimit = std::chrono::seconds(15); ///< start may have to create a context first

/// A non-blocking stream: its work does not wait for a kernel that runs until it is stopped.
class side_stream {
public:
  side_stream() { CUDA_EXPECT_OK(cudaStreamCreateWithFlags(&get, cudaStreamNonBlocking)); }
  ~side_stream() { cudaStreamDestroy(get); }
  side_stream(const side_stream &) = delete;
  side_stream &operator=(const side_stream &) = delete;

  /// Waits until everything on the stream is done.
  cudaError_t wait(std::chrono::nanoseconds limit = kDeadline) const {
    cudaError_t state = cudaErrorNotReady;
    eventually([&] { return (state = cudaStreamQuery(get)) != cudaErrorNotReady; }, limit);
    return state;
  }
  cudaStream_t get = nullptr;
};

/// A zeroed array in device memory. It is allocated and freed in stream order, which waits for no kernel.
template <class T>
class device_array {
public:
  explicit device_array(std::size_t n) : size_(n) {
    CUDA_EXPECT_OK(cudaMallocAsync(reinterpret_cast<void **>(&get), bytes(), stream_.get));
    upload(std::vector<T>(n));
  }
  explicit device_array(const std::vector<T> &values) : device_array(values.size()) { upload(values); }
  ~device_array() {
    cudaFreeAsync(get, stream_.get);
    stream_.wait();
  }
  device_array(const device_array &) = delete;
  device_array &operator=(const device_array &) = delete;

  void upload(const std::vector<T> &values) {
    CUDA_EXPECT_OK(cudaMemcpyAsync(get, values.data(), bytes(), cudaMemcpyHostToDevice, stream_.get));
    CUDA_EXPECT_OK(stream_.wait());
  }
  std::vector<T> download() const {
    std::vector<T> values(size_);
    CUDA_EXPECT_OK(cudaMemcpyAsync(values.data(), get, bytes(), cudaMemcpyDeviceToHost, stream_.get));
    CUDA_EXPECT_OK(stream_.wait());
    return values;
  }
  T *get = nullptr;

private:
  std::size_t bytes() const { return size_ * sizeof(T); }
  side_stream stream_;
  std::size_t size_;
};

/// A word that the CPU and the device share. Never freed: freeing it would wait for every kernel of the device.
template <class T>
T *mapped_word() {
  void *word = nullptr;
  CUDA_EXPECT_OK(cudaHostAlloc(&word, sizeof(T), cudaHostAllocMapped | cudaHostAllocPortable));
  return word == nullptr ? nullptr : new (word) T{};
}

/// Makes a device current for the life of the object.
class current_device {
public:
  explicit current_device(int device) {
    CUDA_EXPECT_OK(cudaGetDevice(&before_));
    CUDA_EXPECT_OK(cudaSetDevice(device));
  }
  ~current_device() { cudaSetDevice(before_); }
  current_device(const current_device &) = delete;
  current_device &operator=(const current_device &) = delete;

private:
  int before_ = 0;
};

} // namespace cudaq::realtime::test
