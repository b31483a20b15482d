// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/realtime/inference_engine.h"

#include <memory>

namespace cudaq::qec::realtime::gpu {

/// The CUDA device with this number. Throws std::runtime_error.
std::shared_ptr<experimental::service_device> cuda_service_device(int device_id = 0);

} // namespace cudaq::qec::realtime::gpu
