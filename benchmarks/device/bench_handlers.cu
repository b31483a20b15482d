// SPDX-License-Identifier: Apache-2.0
// The handlers of `device`, written as users of the library would write them.
#include "benchmarks/device/bench_gpu.h"

#include "cudaq/realtime/daemon/dispatcher/kernel_types.h"
#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"

namespace cudaq::realtime::tools {
namespace {

constexpr int kTooLong = 1; ///< status: no room for the result

__device__ int echo_handler(const void *input, void *output, std::uint32_t arg_len, std::uint32_t max_result_len,
                            std::uint32_t *result_len) {
  if (arg_len > max_result_len)
    return kTooLong;
  const auto *in = static_cast<const std::uint64_t *>(input);
  auto *out = static_cast<std::uint64_t *>(output);
  for (std::uint32_t i = 0; i < arg_len / sizeof *in; ++i)
    out[i] = in[i];
  *result_len = arg_len;
  return CUDAQ_RPC_OK;
}

__device__ int add_words_handler(const void *input, void *output, std::uint32_t arg_len, std::uint32_t max_result_len,
                                 std::uint32_t *result_len) {
  if (arg_len > max_result_len)
    return kTooLong;
  const auto *in = static_cast<const std::uint32_t *>(input);
  auto *out = static_cast<std::uint32_t *>(output);
  for (std::uint32_t i = 0; i < arg_len / sizeof *in; ++i)
    out[i] = in[i] + 1;
  *result_len = arg_len;
  return CUDAQ_RPC_OK;
}

__device__ int add_words_batched_handler(const void *input, void *output, std::uint32_t arg_len,
                                         std::uint32_t max_result_len, std::uint32_t *result_len) {
  constexpr std::uint32_t kBatch = 8;
  if (arg_len > max_result_len)
    return kTooLong;
  const auto *in = static_cast<const uint2 *>(input);
  auto *out = static_cast<uint2 *>(output);
  const std::uint32_t count = arg_len / sizeof *in;
  for (std::uint32_t first = 0; first < count; first += kBatch) {
    uint2 held[kBatch];
#pragma unroll
    for (std::uint32_t k = 0; k < kBatch; ++k)
      if (first + k < count)
        held[k] = in[first + k];
#pragma unroll
    for (std::uint32_t k = 0; k < kBatch; ++k)
      if (first + k < count)
        out[first + k] = {held[k].x + 1, held[k].y + 1};
  }
  *result_len = arg_len;
  return CUDAQ_RPC_OK;
}

__device__ int last_word_handler(const void *input, void *output, std::uint32_t arg_len, std::uint32_t max_result_len,
                                 std::uint32_t *result_len) {
  if (arg_len > max_result_len)
    return kTooLong;
  const auto *in = static_cast<const std::uint32_t *>(input);
  static_cast<std::uint32_t *>(output)[arg_len / sizeof *in - 1] = ~in[0];
  *result_len = arg_len;
  return CUDAQ_RPC_OK;
}

__device__ int add_bytes_handler(const void *input, void *output, std::uint32_t arg_len, std::uint32_t max_result_len,
                                 std::uint32_t *result_len) {
  if (arg_len > max_result_len)
    return kTooLong;
  const auto *in = static_cast<const std::uint8_t *>(input);
  auto *out = static_cast<std::uint8_t *>(output);
  const std::uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (std::uint32_t i = thread; i < arg_len; i += gridDim.x * blockDim.x)
    out[i] = static_cast<std::uint8_t>(in[i] + 1);
  if (thread == 0)
    *result_len = arg_len;
  return CUDAQ_RPC_OK;
}

__device__ DeviceRPCFunction address_of(bench_handler handler) {
  switch (handler) {
  case bench_handler::echo:
    return &echo_handler;
  case bench_handler::add_words:
    return &add_words_handler;
  case bench_handler::add_words_batched:
    return &add_words_batched_handler;
  case bench_handler::last_word:
    return &last_word_handler;
  case bench_handler::add_bytes:
    return &add_bytes_handler;
  }
  return nullptr;
}

__global__ void fill_entry_kernel(cudaq_function_entry_t *entry, std::uint32_t function_id, bench_handler handler) {
  *entry = cudaq_function_entry_t{};
  entry->handler.device_fn_ptr = reinterpret_cast<void *>(address_of(handler));
  entry->function_id = function_id;
  entry->dispatch_mode = CUDAQ_DISPATCH_DEVICE_CALL;
}

} // namespace

cudaError_t fill_table_entry(cudaq_function_entry_t *entry, std::uint32_t function_id, bench_handler handler,
                             cudaStream_t stream) {
  fill_entry_kernel<<<1, 1, 0, stream>>>(entry, function_id, handler);
  return cudaGetLastError();
}

cudaError_t preload_bench_handlers() { return preload_kernels(fill_entry_kernel); }

} // namespace cudaq::realtime::tools
