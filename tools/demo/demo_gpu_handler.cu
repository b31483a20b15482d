// SPDX-License-Identifier: Apache-2.0
#include "tools/demo/demo_gpu.h"

#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"

namespace cudaq::realtime::tools {
namespace {

namespace qec = cudaq::qec::realtime;

/// A DEVICE_CALL handler has no user pointer, so its table is a variable of the module.
__device__ qec::lookup_table_view decode_table;

__device__ int decode_handler(const void *input, void *output, std::uint32_t arg_len, std::uint32_t max_result_len,
                              std::uint32_t *result_len) {
  const qec::lookup_table_view table = decode_table;
  const std::uint32_t bytes = (table.num_observables + 7) / 8;
  *result_len = 0;
  if (max_result_len < bytes || arg_len < (table.num_detectors + 7) / 8)
    return static_cast<int>(qec::decode_status::buffer_too_small);
  const qec::decode_status status =
      qec::lookup_decode_packed(table, static_cast<const std::uint8_t *>(input), static_cast<std::uint8_t *>(output));
  if (status == qec::decode_status::ok)
    *result_len = bytes;
  return static_cast<int>(status);
}

__global__ void set_table_kernel(qec::lookup_table_view table) { decode_table = table; }

__global__ void fill_decode_entry_kernel(cudaq_function_entry_t *entry, std::uint32_t function_id,
                                         cudaq_handler_schema_t schema) {
  *entry = cudaq_function_entry_t{};
  const DeviceRPCFunction handler = &decode_handler;
  entry->handler.device_fn_ptr = reinterpret_cast<void *>(handler);
  entry->function_id = function_id;
  entry->dispatch_mode = CUDAQ_DISPATCH_DEVICE_CALL;
  entry->schema = schema;
}

} // namespace

cudaError_t set_decode_table(const qec::lookup_table_view &table, cudaStream_t stream) {
  set_table_kernel<<<1, 1, 0, stream>>>(table);
  const cudaError_t error = cudaGetLastError();
  return error != cudaSuccess ? error : cudaStreamSynchronize(stream);
}

cudaError_t fill_decode_entry(cudaq_function_entry_t *entry, std::uint32_t function_id,
                              const cudaq_handler_schema_t &schema, cudaStream_t stream) {
  fill_decode_entry_kernel<<<1, 1, 0, stream>>>(entry, function_id, schema);
  return cudaGetLastError();
}

} // namespace cudaq::realtime::tools
