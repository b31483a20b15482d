// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "unittests/support/fake_cuda/fake_cuda.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <thread>

namespace cudaq::realtime::test {

/// A kernel that runs until end(), on a stream of its own.
class endless_kernel {
public:
  endless_kernel() : made(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)) {
    if (made == cudaSuccess)
      fake_cuda::launch(stream_, [this] {
        while (!ends_)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
      });
  }
  ~endless_kernel() {
    end();
    cudaStreamDestroy(stream_);
  }
  endless_kernel(const endless_kernel &) = delete;
  endless_kernel &operator=(const endless_kernel &) = delete;

  void end() {
    ends_ = true;
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  }

private:
  std::atomic<bool> ends_{false};
  cudaStream_t stream_ = nullptr;

public:
  const cudaError_t made; ///< its stream
};

} // namespace cudaq::realtime::test
