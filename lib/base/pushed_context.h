// SPDX-License-Identifier: Apache-2.0
// The context of a device, made current without cudaSetDevice.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace cudaq::realtime::detail {

/// Makes the primary context of a device current for a thread whose own device has no context, and must not get one.
/// The thread's choice of a device (cudaGetDevice) is the same again after pop().
class pushed_context {
public:
  /// False: `own` has a context or cannot be asked, or `wanted` cannot be pushed. Then nothing is changed.
  bool push_unless_used(int own, int wanted) {
    decltype(&cuDevicePrimaryCtxGetState) get_state = nullptr;
    decltype(&cuDevicePrimaryCtxRetain) retain = nullptr;
    decltype(&cuCtxPushCurrent) push = nullptr;
    unsigned int flags = 0;
    int active = 0;
    if (!find("cuDevicePrimaryCtxGetState", get_state) || get_state(own, &flags, &active) != CUDA_SUCCESS ||
        active != 0)
      return false;
    if (!find("cuDevicePrimaryCtxRetain", retain) || !find("cuDevicePrimaryCtxRelease", release_) ||
        !find("cuCtxPushCurrent", push) || !find("cuCtxPopCurrent", pop_))
      return false;
    CUcontext context = nullptr;
    if (retain(&context, wanted) != CUDA_SUCCESS)
      return false;
    if (push(context) != CUDA_SUCCESS) {
      release_(wanted);
      return false;
    }
    pushed_ = wanted;
    return true;
  }
  /// Ends what a push that returned true has begun.
  void pop() {
    if (pushed_ < 0)
      return;
    CUcontext popped = nullptr;
    pop_(&popped);
    release_(pushed_);
    pushed_ = -1;
  }

private:
  // The numbers of the driver's devices are those of the runtime. The library does not link the driver.
  template <class Function>
  static bool find(const char *name, Function &out) {
    constexpr unsigned int kVersion = 12000;
    void *symbol = nullptr;
    cudaDriverEntryPointQueryResult found{};
    if (cudaGetDriverEntryPointByVersion(name, &symbol, kVersion, cudaEnableDefault, &found) != cudaSuccess ||
        found != cudaDriverEntryPointSuccess)
      return false;
    out = reinterpret_cast<Function>(symbol);
    return true;
  }

  decltype(&cuDevicePrimaryCtxRelease) release_ = nullptr;
  decltype(&cuCtxPopCurrent) pop_ = nullptr;
  int pushed_ = -1;
};

} // namespace cudaq::realtime::detail
