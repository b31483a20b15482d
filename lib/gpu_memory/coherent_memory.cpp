// SPDX-License-Identifier: Apache-2.0
// Systems whose CPU accesses device memory directly, such as Grace Hopper: managed memory that stays on the device.
#include "lib/gpu_memory/mapping_ways.h"

namespace cudaq::realtime::detail {
namespace {

class coherent_memory : public mapped_device_memory {
public:
  coherent_memory() : mapped_device_memory(CUDAQ_MAPPING_COHERENT) {}
  ~coherent_memory() override {
    if (host_ != nullptr)
      cudaFree(host_);
  }

  expected<> map(const mapping_request &request) {
    void *memory = nullptr;
    if (const cudaError_t error = cudaMallocManaged(&memory, request.bytes))
      return cuda_failed("cudaMallocManaged", error);
    host_ = device_ = static_cast<std::uint8_t *>(memory);
    const auto advise = [&](cudaMemoryAdvise advice, cudaMemLocationType type) {
      const cudaMemLocation where{type, type == cudaMemLocationTypeDevice ? request.device : 0};
#if CUDART_VERSION >= 13000
      return cudaMemAdvise(memory, request.bytes, advice, where);
#else
      return cudaMemAdvise(memory, request.bytes, advice,
                           type == cudaMemLocationTypeDevice ? where.id : cudaCpuDeviceId);
#endif
    };
    cudaError_t error = advise(cudaMemAdviseSetPreferredLocation, cudaMemLocationTypeDevice);
    if (error == cudaSuccess)
      error = advise(cudaMemAdviseSetAccessedBy, cudaMemLocationTypeHost);
    return error == cudaSuccess ? zero_device_memory(memory, request.bytes) : cuda_failed("cudaMemAdvise", error);
  }
};

} // namespace

expected<> map_coherent(const mapping_request &request, mapping_result &out) {
  if (request.nic_registration)
    return lacks("managed memory cannot be registered with a NIC");
  if (request.exportable)
    return lacks("managed memory cannot be mapped by another process");
  int direct = 0;
  if (const cudaError_t error =
          cudaDeviceGetAttribute(&direct, cudaDevAttrDirectManagedMemAccessFromHost, request.device))
    return cuda_failed("cudaDevAttrDirectManagedMemAccessFromHost", error);
  if (direct == 0)
    return lacks("the CPU cannot access memory of this device directly");
  return map_as<coherent_memory>(request, out);
}

} // namespace cudaq::realtime::detail
