// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/realtime/inference_engine.h"

#include <memory>

namespace cudaq::qec::realtime::gpu {

/// An engine without a model: the output is the input, `bytes` of UINT8. For measurements without an inference in them
/// (the seeds' SKIP_TRT). Throws std::invalid_argument for 0 bytes.
std::unique_ptr<experimental::inference_engine> passthrough_engine(std::size_t bytes);

} // namespace cudaq::qec::realtime::gpu
