// SPDX-License-Identifier: Apache-2.0
// Stands in for tensorrt_engine.cpp where TensorRT was not found at configure time.
#include "kernels/qec/tensorrt_engine.h"

#include <stdexcept>

namespace cudaq::qec::realtime::gpu {

bool tensorrt_available() noexcept { return false; }

opened_engine open_tensorrt_engine(const tensorrt_options &options) {
  throw std::runtime_error(options.model + ": TensorRT was not built in: configure with -DTENSORRT_ROOT=DIR");
}

} // namespace cudaq::qec::realtime::gpu
