// SPDX-License-Identifier: Apache-2.0
// TensorRT, version 10 or newer, as the engine of the AI services: contrib/tensorrt. See docs/pipeline.md.
#pragma once

#include "cudaq/qec/realtime/inference_engine.h"

#include <memory>
#include <string>

namespace cudaq::qec::realtime::gpu {

struct tensorrt_options {
  /// An *.onnx file with its weights inside, or a serialized engine.
  std::string model;
  /// Where the engine of an ONNX model is saved: a folder or a file. Empty: not saved.
  std::string save;
  int device_id = 0;
};

/// Opens a model; the engine's tensors can then be bound. An open batch dimension becomes 1. Tensors are in device
/// memory, row-major, with at least one byte per element. Building takes seconds to minutes. The caller's current
/// device is not changed. Throws std::runtime_error with TensorRT's messages, also if the library was built without
/// TensorRT. Prints nothing. `note` (may be null): why a saved engine was not used or the engine was not saved; else
/// empty.
std::unique_ptr<experimental::inference_engine> open_tensorrt_engine(const tensorrt_options &options,
                                                                     std::string *note);

} // namespace cudaq::qec::realtime::gpu
