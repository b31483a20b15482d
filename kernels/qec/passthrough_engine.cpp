// SPDX-License-Identifier: Apache-2.0
#include "cudaq/qec/realtime/gpu_services.h"

#include <stdexcept>

namespace cudaq::qec::realtime::gpu {
namespace {

using experimental::tensor_info;
using experimental::tensor_type;

class passthrough final : public experimental::inference_engine {
public:
  explicit passthrough(std::size_t bytes)
      : bytes_(bytes), tensors_{{"input", tensor_type::uint8, {1, static_cast<std::int64_t>(bytes)}, true},
                                {"output", tensor_type::uint8, {1, static_cast<std::int64_t>(bytes)}, false}} {}
  const char *name() const noexcept override { return "passthrough"; }
  const std::vector<tensor_info> &tensors() const noexcept override { return tensors_; }
  void bind(std::size_t index, void *device_memory) override { memory_[index] = device_memory; }
  cudaError_t enqueue(cudaStream_t stream) override {
    return cudaMemcpyAsync(memory_[1], memory_[0], bytes_, cudaMemcpyDeviceToDevice, stream);
  }

private:
  std::size_t bytes_;
  std::vector<tensor_info> tensors_;
  void *memory_[2] = {};
};

} // namespace

std::unique_ptr<experimental::inference_engine> passthrough_engine(std::size_t bytes) {
  if (bytes == 0)
    throw std::invalid_argument("passthrough_engine: bytes is 0, it must be at least 1");
  return std::make_unique<passthrough>(bytes);
}

} // namespace cudaq::qec::realtime::gpu
