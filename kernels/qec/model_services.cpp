// SPDX-License-Identifier: Apache-2.0
// Services from a model file: the constructors of the specification.
#include "cudaq/qec/realtime/ai_predecoder_service.h"
#include "cudaq/qec/realtime/gpu_services.h"

#include "kernels/qec/device_memory.h"
#include "kernels/qec/tensorrt_engine.h"

#include <charconv>

namespace cudaq::qec::realtime {
namespace gpu {

std::unique_ptr<experimental::inference_engine> open_model(const model_options &options, std::string *note) {
  constexpr std::string_view kPassthrough = "passthrough:";
  if (note != nullptr)
    note->clear();
  if (options.model.starts_with(kPassthrough)) {
    std::size_t bytes = 0;
    const char *const begin = options.model.data() + kPassthrough.size();
    const char *const end = options.model.data() + options.model.size();
    const auto [stop, error] = std::from_chars(begin, end, bytes);
    if (error != std::errc() || stop != end || bytes == 0)
      throw std::runtime_error(options.model + ": after \"passthrough:\" comes the number of bytes, at least 1");
    return passthrough_engine(bytes);
  }
  return open_tensorrt_engine({options.model, options.save, options.device_id}, note);
}

namespace {

int current_device() {
  int device = 0;
  require(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

} // namespace
} // namespace gpu

namespace experimental {

ai_decoder_service::ai_decoder_service(const std::string &model_path, void **device_mailbox_slot,
                                       const std::string &engine_save_path)
    : ai_decoder_service(gpu::open_model({model_path, engine_save_path, gpu::current_device()}),
                         gpu::cuda_service_device(gpu::current_device()), device_mailbox_slot) {}

ai_predecoder_service::ai_predecoder_service(const std::string &model_path, void **device_mailbox_slot, int queue_depth,
                                             const std::string &engine_save_path)
    : ai_predecoder_service(gpu::open_model({model_path, engine_save_path, gpu::current_device()}),
                            gpu::cuda_service_device(gpu::current_device()), device_mailbox_slot, queue_depth) {}

} // namespace experimental
} // namespace cudaq::qec::realtime
