// SPDX-License-Identifier: Apache-2.0
// A CUDA runtime without a GPU, for tests: the functions that lib/api calls, and no others. fake_cuda.cpp is linked
// before libcudart_static.a. A function that is missing there makes the link fail, because the archive then defines
// others twice.
//
// Memory of the "device" is host memory at the same address. A stream runs its work in order: short work inside the
// call if nothing is before it, kernels and graphs on a thread of the stream. Each function is a fault point
// (fault_points.h) of its own name. A call that is made to fail does nothing.
#pragma once

#include <atomic>
#include <cuda_runtime_api.h>
#include <functional>
#include <string>

/// A graph that can be launched: a function that plays it.
struct CUgraphExec_st {
  std::function<void()> run;
};

namespace cudaq::realtime::test::fake_cuda {

inline constexpr int kDevices = 2;

/// Queues a kernel: `body` runs on the stream's thread.
void launch(cudaStream_t stream, std::function<void()> body);

/// Memory that the test itself needs. `kind`: cudaMemoryTypeHost (pinned and mapped) or cudaMemoryTypeDevice.
void *allocate(std::size_t bytes, cudaMemoryType kind);
void release(void *block);

/// The calling thread's capture mode.
cudaStreamCaptureMode capture_mode();

/// From now on each call returns this error and does nothing, as after a fault that ends the context. What runs on a
/// stream must end by itself. cudaSuccess: the device is back, as it was.
void lose_device(cudaError_t error);
bool device_is_lost();
/// True: no event is reached, as after the loading of a kernel beside one that does not end.
std::atomic<bool> &keeps_kernels_out();
/// No stream has work.
bool idle();

/// What decides how the CPU can write the devices' memory. clean_up restores these values.
struct mapping_abilities {
  int writes_ordering = cudaGPUDirectRDMAWritesOrderingOwner;
  bool coherent = true; ///< the CPU accesses managed memory on the device directly
  /// What CUDA calls that memory. cudaMemoryTypeDevice: as if it were mapped in another way.
  cudaMemoryType kind = cudaMemoryTypeManaged;
};
mapping_abilities &mapping();

/// True: something has made the context of this device. clean_up ends all contexts.
bool has_context(int device);

/// What was done that would wait without limit, or corrupt memory, on a device. Empty: nothing.
std::string violations();
/// Ends a test: frees all that is left, makes device 0 current, and returns the number of blocks and streams that were
/// left without a reason. The reason of a block or stream is that the call that frees it was made to fail.
int clean_up();

// Between the files of the fake runtime.
void note_violation(const char *what);
/// The error of this call: of a lost device, or because it was made to fail.
cudaError_t injected(const char *call);
/// The calling thread's device. use_context: a call that makes its context, if it has none.
int current_device();
void use_context();
void forget_contexts();
int mapping_attribute(cudaDeviceAttr attribute);
/// The driver's function of this name, or null.
void *context_function(const char *name);

} // namespace cudaq::realtime::test::fake_cuda
