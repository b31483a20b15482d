// SPDX-License-Identifier: Apache-2.0
// The calls of lib/gpu_memory on the CUDA runtime without a GPU. Its devices are coherent: of the ways to map their
// memory only that by managed memory works. The calls of the other ways are refused.
#include "unittests/support/fake_cuda.h"

#include "unittests/support/fault_points.h"

using namespace cudaq::realtime::test;

extern "C" {

cudaError_t cudaMemAdvise(const void *, std::size_t, cudaMemoryAdvise, cudaMemLocation) {
  return faults::hits(__func__) ? cudaErrorUnknown : cudaSuccess;
}
cudaError_t cudaMalloc(void **, std::size_t) { return cudaErrorNotSupported; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *, int) { return cudaErrorNotSupported; }
cudaError_t cudaImportExternalMemory(cudaExternalMemory_t *, const cudaExternalMemoryHandleDesc *) {
  return cudaErrorNotSupported;
}
cudaError_t cudaExternalMemoryGetMappedBuffer(void **, cudaExternalMemory_t, const cudaExternalMemoryBufferDesc *) {
  return cudaErrorNotSupported;
}
cudaError_t cudaDestroyExternalMemory(cudaExternalMemory_t) { return cudaErrorNotSupported; }

} // extern "C"
