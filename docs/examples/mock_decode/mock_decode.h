// SPDX-License-Identifier: Apache-2.0
// The interface of a decoder library for the GPU: a function id, the set-up of its table entry, and launch functions
// for its dispatch kernel. It has no device code, so a C++ compiler can include it.
#pragma once

#include <cudaq/realtime/daemon/dispatcher/device_arguments.h>

namespace cudaq::qec::realtime {

inline constexpr std::uint32_t MOCK_DECODE_FUNCTION_ID = cudaq::realtime::fnv1a_hash("mock_decode");

/// Argument: 128 detection events. Result: one correction byte.
CUDAQ_REALTIME_HOST_DEVICE constexpr cudaq_handler_schema_t mock_decode_schema() {
  using namespace cudaq::realtime;
  return make_schema({make_type_desc(TYPE_BIT_PACKED, 128)}, {make_type_desc(TYPE_UINT8, 1)});
}

/// Writes the decoder's table entry to device memory at `d_entries`, and waits until it is written. `stream` must be a
/// non-blocking stream.
cudaError_t setup_mock_decode_function_table(cudaq_function_entry_t *d_entries, cudaStream_t stream);

extern "C" {
/// For cudaq_dispatcher_set_launch_fn: the kernel calls the handlers of the dispatcher's function table.
void mock_decode_launch_dispatch_kernel(volatile std::uint64_t *rx_flags, volatile std::uint64_t *tx_flags,
                                        std::uint8_t *rx_data, std::uint8_t *tx_data, std::size_t rx_stride_sz,
                                        std::size_t tx_stride_sz, cudaq_function_entry_t *function_table,
                                        std::size_t func_count, volatile int *shutdown_flag, std::uint64_t *stats,
                                        std::size_t num_slots, std::uint32_t num_blocks,
                                        std::uint32_t threads_per_block, cudaStream_t stream);
/// The same with the decoder inlined into the kernel. It ignores the function table.
void mock_decode_launch_dispatch_kernel_inlined(volatile std::uint64_t *rx_flags, volatile std::uint64_t *tx_flags,
                                                std::uint8_t *rx_data, std::uint8_t *tx_data, std::size_t rx_stride_sz,
                                                std::size_t tx_stride_sz, cudaq_function_entry_t *function_table,
                                                std::size_t func_count, volatile int *shutdown_flag,
                                                std::uint64_t *stats, std::size_t num_slots, std::uint32_t num_blocks,
                                                std::uint32_t threads_per_block, cudaStream_t stream);
}

} // namespace cudaq::qec::realtime
