// SPDX-License-Identifier: Apache-2.0
// A handler for the kernels of the archive. It is device-linked with them; they find it through a function table.
#include "archive_handler.h"
#include "round_trip.h"

#include <cudaq/realtime/daemon/dispatcher/device_function_table.cuh>

__device__ int flip(const void *input, void *output, std::uint32_t arg_len, std::uint32_t max_result_len,
                    std::uint32_t *result_len) {
  if (arg_len > max_result_len)
    return 1;
  for (std::uint32_t i = 0; i < arg_len; ++i)
    static_cast<std::uint8_t *>(output)[i] = ~static_cast<const std::uint8_t *>(input)[i];
  *result_len = arg_len;
  return 0;
}

cudaError_t handler_table(cudaStream_t stream, cudaq_function_table_t *out_table) {
  using namespace cudaq::realtime;
  static device_function_table table(stream);
  cudaError_t error = table.add(kFlip, device_handler<flip>());
  if (error == cudaSuccess)
    error = table.upload();
  *out_table = table.view();
  return error;
}
