// SPDX-License-Identifier: Apache-2.0
// Memory that a GPU worker owns. CUDA errors are thrown as std::runtime_error.
#pragma once

#include "lib/base/cuda_device.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace cudaq::qec::realtime::gpu {

inline void require(cudaError_t error, const char *what) {
  if (error == cudaSuccess)
    return;
  cudaGetLastError(); // clears the error: the exception reports it
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")");
}

/// Device memory, zeroed. Freeing it waits for the kernels that run on the device.
class device_block {
public:
  device_block() = default;
  explicit device_block(std::size_t bytes) : device_block() { // so that the destructor runs if the body throws
    make(bytes);
  }
  device_block(const void *from, std::size_t bytes) : device_block() { make(from, bytes); }
  device_block(device_block &&other) noexcept : at_(std::exchange(other.at_, nullptr)) {}
  device_block &operator=(device_block &&other) noexcept {
    std::swap(at_, other.at_);
    return *this;
  }
  ~device_block() {
    if (at_ != nullptr)
      cudaFree(at_);
  }
  /// The same in two steps, for owners that keep the memory if a copy fails.
  void make(std::size_t bytes) {
    allocate(bytes);
    fill([&](cudaStream_t stream) { return cudaq::realtime::detail::zero_by_copies(at_, bytes, stream); });
  }
  void make(const void *from, std::size_t bytes) {
    allocate(bytes);
    fill([&](cudaStream_t stream) {
      const cudaError_t error = cudaMemcpyAsync(at_, from, bytes, cudaMemcpyHostToDevice, stream);
      // It may return before the bytes are there, and kernels on non-blocking streams do not wait for them.
      return error == cudaSuccess ? cudaStreamSynchronize(stream) : error;
    });
  }
  template <class T>
  T *as() const {
    return static_cast<T *>(at_);
  }
  /// The caller frees it.
  void *release() { return std::exchange(at_, nullptr); }

private:
  /// On a stream of its own: blocking streams would wait for kernels on others of the program, and are not usable while
  /// one of them is captured.
  template <class Work>
  static void fill(Work &&work) {
    if (const auto result = cudaq::realtime::detail::on_own_stream("filling device memory", work); result.failed())
      throw std::runtime_error(result.text());
  }
  void allocate(std::size_t bytes) { require(cudaMalloc(&at_, bytes == 0 ? 1 : bytes), "cudaMalloc"); }

  void *at_ = nullptr;
};

/// Mapped host memory, zeroed: the device can access it.
class mapped_block {
public:
  mapped_block() = default;
  explicit mapped_block(std::size_t bytes) : mapped_block() { // so that the destructor runs if the body throws
    require(cudaHostAlloc(&host_, bytes, cudaHostAllocMapped | cudaHostAllocPortable), "cudaHostAlloc");
    std::memset(host_, 0, bytes);
    require(cudaHostGetDevicePointer(&device_, host_, 0), "cudaHostGetDevicePointer");
  }
  mapped_block(mapped_block &&other) noexcept
      : host_(std::exchange(other.host_, nullptr)), device_(std::exchange(other.device_, nullptr)) {}
  mapped_block &operator=(mapped_block &&other) noexcept {
    std::swap(host_, other.host_);
    std::swap(device_, other.device_);
    return *this;
  }
  ~mapped_block() {
    if (host_ != nullptr)
      cudaFreeHost(host_);
  }
  template <class T>
  T *host() const {
    return static_cast<T *>(host_);
  }
  template <class T>
  T *device() const {
    return static_cast<T *>(device_);
  }

private:
  void *host_ = nullptr, *device_ = nullptr;
};

} // namespace cudaq::qec::realtime::gpu
