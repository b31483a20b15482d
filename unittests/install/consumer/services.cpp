// SPDX-License-Identifier: Apache-2.0
// The AI services from the install tree, with the constructors of the specification. Without a GPU the services cannot
// be made; the engine can.
#include "cudaq/qec/realtime/ai_predecoder_service.h"
#include "cudaq/qec/realtime/gpu_services.h"

#include <cstdio>
#include <cuda_runtime_api.h>
#include <stdexcept>

namespace {

namespace gpu = cudaq::qec::realtime::gpu;

int fail(const char *text) {
  std::printf("%s\n", text);
  return 1;
}

bool refused(const char *model, const char *word) {
  try {
    gpu::open_model({model, "", 0});
    return false;
  } catch (const std::runtime_error &e) {
    return std::string(e.what()).find(word) != std::string::npos;
  }
}

} // namespace

int main() {
  const auto engine = gpu::open_model({"passthrough:16", "", 0});
  if (engine->tensors().size() != 2 || engine->tensors()[0].size_bytes() != 16)
    return fail("passthrough:16 does not have an input and an output of 16 bytes");
  if (!refused("passthrough:0", "passthrough:0") || !refused("passthrough:x", "number of bytes"))
    return fail("a wrong number of bytes was accepted, or the text does not name it");
  if (!refused("/does/not/exist.onnx", "/does/not/exist.onnx"))
    return fail("a model that does not exist was opened, or the text does not name it");
  void *word = nullptr; // stands for a mailbox: no graph is captured here
  try {
    cudaq::qec::AIDecoderService decoder("passthrough:16", &word);
    cudaq::qec::AIPreDecoderService predecoder("passthrough:16", &word, 4);
    if (decoder.get_input_size() != 16 || predecoder.get_queue_depth() != 4 ||
        predecoder.get_device_queue_idx() == nullptr || predecoder.get_device_ready_flags() == nullptr)
      return fail("the accessors do not describe the services");
    std::puts("services made on a GPU");
  } catch (const std::runtime_error &e) {
    std::printf("no GPU: %s\n", e.what());
  }
  return 0;
}
