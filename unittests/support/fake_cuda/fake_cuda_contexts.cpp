// SPDX-License-Identifier: Apache-2.0
// The devices' contexts of the CUDA runtime without a GPU. As in CUDA 12, cudaSetDevice makes a context on a device
// that has none, and so does the first call that needs one.
#include "unittests/support/fake_cuda/fake_cuda.h"

#include "unittests/support/fault_points.h"

#include <cuda.h>
#include <mutex>
#include <string_view>
#include <vector>

using namespace cudaq::realtime::test;

namespace {

struct primary_context {
  int references = 0;
  bool of_runtime = false; ///< the runtime holds a reference to the end of the process
};

std::mutex mutex;
primary_context contexts[fake_cuda::kDevices];
thread_local int own = 0;             // the device of cudaSetDevice
thread_local std::vector<int> pushed; // the devices of the contexts on the thread's stack

bool is_device(int device) { return device >= 0 && device < fake_cuda::kDevices; }
CUcontext handle(int device) { return reinterpret_cast<CUcontext>(&contexts[device]); }

CUresult get_state(CUdevice device, unsigned int *flags, int *active) {
  if (faults::hits("cuDevicePrimaryCtxGetState"))
    return CUDA_ERROR_UNKNOWN;
  const std::lock_guard lock(mutex);
  *flags = 0;
  *active = contexts[device].references > 0;
  return CUDA_SUCCESS;
}
CUresult retain(CUcontext *out, CUdevice device) {
  if (faults::hits("cuDevicePrimaryCtxRetain"))
    return CUDA_ERROR_OUT_OF_MEMORY;
  const std::lock_guard lock(mutex);
  ++contexts[device].references;
  *out = handle(device);
  return CUDA_SUCCESS;
}
CUresult release_reference(CUdevice device) {
  const std::lock_guard lock(mutex);
  if (--contexts[device].references == 0)
    fake_cuda::note_violation("a context is destroyed, with all that was made in it");
  return CUDA_SUCCESS;
}
CUresult push(CUcontext context) {
  if (faults::hits("cuCtxPushCurrent"))
    return CUDA_ERROR_UNKNOWN;
  const faults::exempt_scope inside;
  pushed.push_back(context == handle(0) ? 0 : 1);
  return CUDA_SUCCESS;
}
CUresult pop(CUcontext *out) {
  if (pushed.empty())
    return CUDA_ERROR_INVALID_CONTEXT;
  *out = handle(pushed.back());
  pushed.pop_back();
  if (pushed.empty())
    pushed.shrink_to_fit(); // a thread holds no memory afterwards
  return CUDA_SUCCESS;
}

} // namespace

namespace cudaq::realtime::test::fake_cuda {

static_assert(kDevices == 2, "push knows two contexts");

int current_device() { return pushed.empty() ? own : pushed.back(); }

void use_context() {
  const std::lock_guard lock(mutex);
  primary_context &used = contexts[current_device()];
  if (!used.of_runtime)
    ++used.references;
  used.of_runtime = true;
}

bool has_context(int device) {
  const std::lock_guard lock(mutex);
  return contexts[device].references > 0;
}

void forget_contexts() {
  const std::lock_guard lock(mutex);
  for (primary_context &one : contexts)
    one = {};
  own = 0;
}

void *context_function(const char *name) {
  const struct {
    std::string_view name;
    void *function;
  } known[] = {{"cuDevicePrimaryCtxGetState", reinterpret_cast<void *>(&get_state)},
               {"cuDevicePrimaryCtxRetain", reinterpret_cast<void *>(&retain)},
               {"cuDevicePrimaryCtxRelease", reinterpret_cast<void *>(&release_reference)},
               {"cuCtxPushCurrent", reinterpret_cast<void *>(&push)},
               {"cuCtxPopCurrent", reinterpret_cast<void *>(&pop)}};
  for (const auto &one : known)
    if (one.name == name)
      return one.function;
  return nullptr;
}

} // namespace cudaq::realtime::test::fake_cuda

extern "C" {

cudaError_t cudaGetDevice(int *out) {
  if (const cudaError_t error = fake_cuda::injected(__func__))
    return error;
  *out = fake_cuda::current_device();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t error = fake_cuda::injected(__func__))
    return error;
  if (!is_device(device))
    return cudaErrorInvalidDevice;
  if (pushed.empty())
    own = device;
  else
    pushed.back() = device; // as the runtime does: the context on top of the stack is replaced
  fake_cuda::use_context();
  return cudaSuccess;
}

} // extern "C"
