// SPDX-License-Identifier: Apache-2.0
// A device made current for a while, so that a device that the program does not use gets no context.
#ifndef CUDAQ_REALTIME_DETAIL_BASE_ENTERED_DEVICE_H
#define CUDAQ_REALTIME_DETAIL_BASE_ENTERED_DEVICE_H

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace cudaq::realtime::detail {

/// Makes `device` current, unless it is: cudaSetDevice would replace a context that is pushed.
inline cudaError_t make_current(int device) {
  int now = -1;
  const cudaError_t error = cudaGetDevice(&now);
  return error == cudaSuccess && now != device ? cudaSetDevice(device) : error;
}

/// Makes the primary context of a device current for a thread whose own device has no context, and must not get one.
/// The thread's choice of a device (cudaGetDevice) is the same again after pop().
class pushed_context {
public:
  /// False: `own` has a context or cannot be queried, or `wanted` cannot be pushed. Then none is pushed; `wanted` may
  /// have got its context.
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
    if (get_state(wanted, &flags, &active) != CUDA_SUCCESS || retain(&context, wanted) != CUDA_SUCCESS)
      return false;
    // The first reference to a context stays to the end of the process, as the runtime's does: objects of the
    // context end with its last reference.
    releases_ = active != 0;
    if (push(context) == CUDA_SUCCESS)
      pushed_ = wanted;
    else if (releases_)
      release_(wanted);
    return pushed_ >= 0;
  }
  /// Undoes a push that returned true.
  void pop() {
    if (pushed_ < 0)
      return;
    CUcontext popped = nullptr;
    pop_(&popped);
    if (releases_)
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
  bool releases_ = false;
};

/// Makes a device current between enter() and leave(), for the calling thread.
///
/// cudaSetDevice makes a context on a device that has none, which takes half a second and memory. A new thread's
/// current device is 0, which the program may not use. So if the device before has no context, cudaSetDevice is not
/// called: the context of the wanted device is pushed, and later popped. The device before still gets its context if
/// other code has changed the current device in the meantime.
class entered_device {
public:
  entered_device() = default;
  ~entered_device() { leave(); }
  entered_device(const entered_device &) = delete;
  entered_device &operator=(const entered_device &) = delete;

  cudaError_t enter(int device) {
    const cudaError_t error = cudaGetDevice(&before_);
    if (error != cudaSuccess || before_ == device || pushed_.push_unless_used(before_, device))
      return error;
    return cudaSetDevice(device);
  }
  /// Makes the device current again that enter() found. The call is repeated once: the runtime may return the error of
  /// earlier work.
  void leave() {
    pushed_.pop();
    if (before_ >= 0 && make_current(before_) != cudaSuccess)
      make_current(before_);
    before_ = -1;
  }

private:
  int before_ = -1;
  pushed_context pushed_;
};

} // namespace cudaq::realtime::detail

#endif
