// SPDX-License-Identifier: Apache-2.0
// The calls of lib/gpu_memory on the CUDA runtime without a GPU. Its devices are coherent unless a test says otherwise.
// No Vulkan device is one of them: the calls after that are refused.
#include "unittests/support/fake_cuda/fake_cuda.h"

#include "unittests/support/fault_points.h"

#include <cstring>

using namespace cudaq::realtime::test;

namespace cudaq::realtime::test::fake_cuda {

mapping_abilities &mapping() {
  static mapping_abilities now;
  return now;
}

int mapping_attribute(cudaDeviceAttr attribute) {
  return attribute == cudaDevAttrGPUDirectRDMAWritesOrdering      ? mapping().writes_ordering
         : attribute == cudaDevAttrDirectManagedMemAccessFromHost ? int{mapping().coherent}
                                                                  : 0;
}

} // namespace cudaq::realtime::test::fake_cuda

extern "C" {

cudaError_t cudaMemAdvise(const void *, std::size_t, cudaMemoryAdvise, cudaMemLocation) {
  return faults::hits(__func__) ? cudaErrorUnknown : cudaSuccess;
}
cudaError_t cudaMalloc(void **out, std::size_t bytes) {
  if (fake_cuda::device_is_lost() || faults::hits(__func__))
    return cudaErrorMemoryAllocation;
  fake_cuda::use_context();
  std::memset(*out = fake_cuda::allocate(bytes, cudaMemoryTypeDevice), 0xCD, bytes); // fresh memory is not zero
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device) {
  if (const cudaError_t error = fake_cuda::injected(__func__))
    return error;
  *out = {};
  for (char &byte : out->uuid.bytes)
    byte = static_cast<char>(0xF0 + device);
  return cudaSuccess;
}
cudaError_t cudaImportExternalMemory(cudaExternalMemory_t *, const cudaExternalMemoryHandleDesc *) {
  return cudaErrorNotSupported;
}
cudaError_t cudaExternalMemoryGetMappedBuffer(void **, cudaExternalMemory_t, const cudaExternalMemoryBufferDesc *) {
  return cudaErrorNotSupported;
}
cudaError_t cudaDestroyExternalMemory(cudaExternalMemory_t) { return cudaErrorNotSupported; }

} // extern "C"
