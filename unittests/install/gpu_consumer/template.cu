// SPDX-License-Identifier: Apache-2.0
// Kernel and handler in one module, without a function table and without separable compilation.
#include "round_trip.h"

#include <cudaq/realtime/daemon/dispatcher/dispatch_kernel.cuh>

using namespace cudaq::realtime;

__device__ int flip(const void *input, void *output, std::uint32_t arg_len, std::uint32_t max_result_len,
                    std::uint32_t *result_len) {
  if (arg_len > max_result_len)
    return 1;
  for (std::uint32_t i = 0; i < arg_len; ++i)
    static_cast<std::uint8_t *>(output)[i] = ~static_cast<const std::uint8_t *>(input)[i];
  *result_len = arg_len;
  return 0;
}

static cudaError_t launch(const cudaq_dispatch_launch_params_t *params) {
  return launch_dispatch_kernel<RegularKernel, handler_list<static_handler<kFlip, flip>>>(*params);
}

int main() { return round_trip(launch, cudaq_function_table_t{}); }
