// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/realtime/inference_engine.h"

#include <memory>

namespace cudaq::qec::realtime::gpu {

/// An engine without a model: the output is the input, `bytes` of UINT8. It is for measurements without an inference
/// (SKIP_TRT in the specification). Throws std::invalid_argument for 0 bytes.
std::unique_ptr<experimental::inference_engine> passthrough_engine(std::size_t bytes);

} // namespace cudaq::qec::realtime::gpu
