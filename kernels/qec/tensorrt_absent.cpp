// SPDX-License-Identifier: Apache-2.0
// Replaces tensorrt_engine.cpp if TensorRT was not found at configure time.
#include "kernels/qec/tensorrt_engine.h"

#include "cudaq/qec/realtime/gpu_services.h"

#include <stdexcept>

namespace cudaq::qec::realtime::gpu {

bool tensorrt_available() noexcept { return false; }

opened_engine open_tensorrt_engine(const tensorrt_options &options) {
  throw std::runtime_error(options.model +
                           ": this library was built without TensorRT; configure it with -DTENSORRT_ROOT=DIR");
}

} // namespace cudaq::qec::realtime::gpu
