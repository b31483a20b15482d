// SPDX-License-Identifier: Apache-2.0
// In place of contrib/tensorrt, which is off by default.
#include "kernels/qec/tensorrt_engine.h"

#include "cudaq/qec/realtime/gpu_services.h"

#include <stdexcept>

namespace cudaq::qec::realtime::gpu {

bool tensorrt_available() noexcept { return false; }

std::unique_ptr<experimental::inference_engine> open_tensorrt_engine(const tensorrt_options &options, std::string *) {
  throw std::runtime_error(options.model + ": this library was built without TensorRT; configure it with "
                                           "-DCUDAQ_WITH_TENSORRT=ON -DTENSORRT_ROOT=DIR");
}

} // namespace cudaq::qec::realtime::gpu
