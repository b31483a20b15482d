// SPDX-License-Identifier: Apache-2.0
// A decoder and its dispatch kernel in one file. They are one module, so they need no separable compilation.
#include "mock_decode.h"

#include <cudaq/realtime/daemon/dispatcher/device_function_table.cuh>
#include <cudaq/realtime/daemon/dispatcher/dispatch_kernel.cuh>

namespace cudaq::qec::realtime {

using namespace cudaq::realtime;

/// Folds the detection events into a byte: bit b is the parity of the events b, b + 8, b + 16, ...
__device__ int mock_decode_rpc(const void *input, void *output, std::uint32_t arg_len, std::uint32_t max_result_len,
                               std::uint32_t *result_len) {
  constexpr cudaq_handler_schema_t schema = mock_decode_schema();
  argument_reader arguments(schema, input, arg_len);
  result_writer results(schema, output, max_result_len);
  std::uint32_t fold = 0;
  for (std::uint32_t w = 0; w < 4; ++w)
    fold ^= arguments.bits(0, w);
  fold ^= fold >> 16;
  fold ^= fold >> 8;
  results.set(0, static_cast<std::uint8_t>(fold));
  return arguments.ok() && results.finish(result_len) ? 0 : 1;
}

cudaError_t setup_mock_decode_function_table(cudaq_function_entry_t *d_entries, cudaStream_t stream) {
  cudaq_function_entry_t entry;
  cudaError_t error = make_device_entry(MOCK_DECODE_FUNCTION_ID, device_handler<mock_decode_rpc>(),
                                        mock_decode_schema(), stream, &entry);
  if (error == cudaSuccess)
    error = cudaMemcpyAsync(d_entries, &entry, sizeof(entry), cudaMemcpyHostToDevice, stream);
  return error == cudaSuccess ? cudaStreamSynchronize(stream) : error;
}

extern "C" void mock_decode_launch_dispatch_kernel(volatile std::uint64_t *rx_flags, volatile std::uint64_t *tx_flags,
                                                   std::uint8_t *rx_data, std::uint8_t *tx_data,
                                                   std::size_t rx_stride_sz, std::size_t tx_stride_sz,
                                                   cudaq_function_entry_t *function_table, std::size_t func_count,
                                                   volatile int *shutdown_flag, std::uint64_t *stats,
                                                   std::size_t num_slots, std::uint32_t num_blocks,
                                                   std::uint32_t threads_per_block, cudaStream_t stream) {
  (void)launch_dispatch_kernel<RegularKernel, table_handlers>(
      make_launch_params(rx_flags, tx_flags, rx_data, tx_data, rx_stride_sz, tx_stride_sz, function_table, func_count,
                         shutdown_flag, stats, num_slots, num_blocks, threads_per_block, stream));
}

extern "C" void mock_decode_launch_dispatch_kernel_inlined(
    volatile std::uint64_t *rx_flags, volatile std::uint64_t *tx_flags, std::uint8_t *rx_data, std::uint8_t *tx_data,
    std::size_t rx_stride_sz, std::size_t tx_stride_sz, cudaq_function_entry_t *function_table, std::size_t func_count,
    volatile int *shutdown_flag, std::uint64_t *stats, std::size_t num_slots, std::uint32_t num_blocks,
    std::uint32_t threads_per_block, cudaStream_t stream) {
  using handlers = handler_list<static_handler<fnv1a_hash("mock_decode"), mock_decode_rpc>>;
  (void)launch_dispatch_kernel<RegularKernel, handlers>(
      make_launch_params(rx_flags, tx_flags, rx_data, tx_data, rx_stride_sz, tx_stride_sz, function_table, func_count,
                         shutdown_flag, stats, num_slots, num_blocks, threads_per_block, stream));
}

} // namespace cudaq::qec::realtime
