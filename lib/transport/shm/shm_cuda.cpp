// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/shm/shm_cuda.h"

#ifdef CUDAQ_REALTIME_HAS_CUDART
#include "lib/base/cuda_device.h"
#include "lib/gpu_memory/mapped_device_memory.h"

#include <optional>
#endif

namespace cudaq::realtime::detail {

#ifdef CUDAQ_REALTIME_HAS_CUDART
namespace {

class cuda_memory : public shm_device_memory {
public:
  explicit cuda_memory(int device) : number_(device) {}
  ~cuda_memory() override {
    if (memory_ != nullptr || !refused_.empty())
      (void)on_device(number_, [&]() -> expected<> {
        memory_.reset();
        refused_.clear();
        return {};
      });
  }

  expected<> make(std::uint64_t bytes) {
    std::string why;
    mapping_request request;
    request.device = number_, request.bytes = bytes, request.exportable = true, request.refused = &refused_;
    if (expected<> result = map_device_memory(request, memory_, why); result.failed())
      return result;
    int file = -1;
    if (expected<> result = memory_->export_to(exported_, file); result.failed())
      return result;
    file_.reset(file);
    host_ = memory_->host(), device_ = memory_->device();
    return {};
  }

private:
  const int number_;
  std::unique_ptr<mapped_device_memory> memory_;
  std::vector<std::unique_ptr<mapped_device_memory>> refused_;
};

} // namespace

expected<> pin_pages(int device_id, std::uint8_t *at, std::uint64_t bytes) {
  std::optional<device_guard> guard;
  if (device_id >= 0)
    guard.emplace(device_id);
  cudaError_t error = guard ? guard->error() : cudaSuccess;
  if (error == cudaSuccess)
    error = cudaHostRegister(at, bytes, cudaHostRegisterMapped | cudaHostRegisterPortable);
  if (error != cudaSuccess)
    return make_reason(CUDAQ_ERR_CUDA, "--pinned: cudaHostRegister: %s; leave the option out on a machine without CUDA",
                       cudaGetErrorString(error));
  void *device = nullptr;
  error = cudaHostGetDevicePointer(&device, at, 0);
  if (error == cudaSuccess && device == at)
    return {};
  cudaHostUnregister(at);
  return make_reason(CUDAQ_ERR_UNSUPPORTED,
                     "--pinned: the device sees the memory at another address than the host (%s), so one base does "
                     "not address the slots of all clients",
                     cudaGetErrorString(error));
}

void unpin_pages(int device_id, std::uint8_t *at) {
  std::optional<device_guard> guard;
  if (device_id >= 0)
    guard.emplace(device_id);
  cudaHostUnregister(at);
}

expected<> make_device_memory(int device, std::uint64_t bytes, std::unique_ptr<shm_device_memory> &out) {
  auto memory = std::make_unique<cuda_memory>(device);
  if (const expected<> result = memory->make(bytes); result.failed())
    return make_reason(result.status(), "--requests is gpu: %s; use --requests host, with requests in pinned memory",
                       result.text().c_str());
  out = std::move(memory);
  return {};
}

#else
expected<> pin_pages(int, std::uint8_t *, std::uint64_t) {
  return {CUDAQ_ERR_UNSUPPORTED, "--pinned: this build has no CUDA (CUDAQ_REALTIME_ENABLE_CUDA)"};
}
void unpin_pages(int, std::uint8_t *) {}
expected<> make_device_memory(int, std::uint64_t, std::unique_ptr<shm_device_memory> &) {
  return {CUDAQ_ERR_UNSUPPORTED, "--requests is gpu: this build has no CUDA (CUDAQ_REALTIME_ENABLE_CUDA)"};
}
#endif

} // namespace cudaq::realtime::detail
