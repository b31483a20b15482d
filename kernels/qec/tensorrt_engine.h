// SPDX-License-Identifier: Apache-2.0
// TensorRT, 10 or newer, as the engine of the AI services. docs/pipeline.md.
#pragma once

#include "lib/qec/services/engine_files.h"

#include <string>

namespace cudaq::qec::realtime::gpu {

struct tensorrt_options {
  /// *.onnx, with its weights inside; or a serialized engine.
  std::string model;
  /// Where the engine of an ONNX model is kept; see engine_files::save.
  std::string save;
  int device_id = 0;
};

/// Was this library built with TensorRT?
bool tensorrt_available() noexcept;

/// A model that is ready to be bound. An open batch is 1; tensors are in device memory, row-major, of one byte per
/// element or more. Building takes seconds to minutes; the caller's current device is left alone. Throws
/// std::runtime_error with what TensorRT says: nothing is printed. Also where there is no TensorRT.
opened_engine open_tensorrt_engine(const tensorrt_options &options);

} // namespace cudaq::qec::realtime::gpu
