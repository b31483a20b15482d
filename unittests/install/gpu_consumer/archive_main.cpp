// SPDX-License-Identifier: Apache-2.0
// A C++ program that uses handlers that are device-linked with the archive.
#include "archive_handler.h"
#include "round_trip.h"

int main() {
  cudaq_function_table_t table{};
  if (has_gpu()) {
    cudaStream_t stream = nullptr;
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
      error = handler_table(stream, &table);
    if (error != cudaSuccess)
      return std::printf("the table: %s\n", cudaGetErrorString(error)), 1;
  }
  return round_trip(cudaq_launch_dispatch_kernel_regular, table);
}
