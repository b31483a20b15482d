// SPDX-License-Identifier: Apache-2.0
// The code of the handlers that check traffic, for dispatch kernels and graphs.
#pragma once

#include "unittests/gpu/support/handlers.h"
#include "unittests/support/checked_payload.h"

namespace cudaq::realtime::test {

/// One thread runs the handler. The counterpart for all threads of a grid is whole_grid in handlers.cu.
struct one_thread {
  __device__ static std::uint32_t rank() { return 0; }
  __device__ static std::uint32_t count() { return 1; }
  __device__ static void sync() {}
};

/// The device side of checked_function::serve_one (unittests/host_dispatcher/traffic.h).
template <class Threads>
__device__ __noinline__ int check_traffic(checked_record *record, std::uint32_t function_id, const void *input,
                                          void *output, std::uint32_t arg_len, std::uint32_t max_result_len,
                                          std::uint32_t *result_len) {
  *result_len = 0;
  std::uint32_t sequence = 0;
  if (arg_len < kCheckedHeader)
    return -1;
  std::memcpy(&sequence, input, sizeof(sequence));
  auto *out = static_cast<std::uint8_t *>(output);
  const std::uint32_t size = checked_result_size(sequence, max_result_len);
  const std::uint8_t salt = result_salt(function_id);
  for (std::uint32_t i = kCheckedHeader + Threads::rank(); i < size; i += Threads::count())
    out[i] = filling(sequence, i, salt);
  *result_len = size;
  if (Threads::rank() != 0)
    return 0;
  auto add = [](std::uint64_t &word) { atomicAdd(reinterpret_cast<unsigned long long *>(&word), 1ull); };
  if (atomicAdd(&record->inside, 1u) != 0)
    add(record->side_by_side);
  if (!intact_frame(input, arg_len, kRequestSalt, sequence) || sequence >= record->size) {
    add(record->corrupt);
  } else {
    if (atomicAdd(&record->served[sequence], 1u) != 0)
      add(record->doubled);
    if (atomicExch(&record->expected, sequence + 1) != sequence)
      add(record->out_of_order);
    write_checked_header(out, size, sequence, salt);
  }
  add(record->calls);
  atomicSub(&record->inside, 1u);
  return 0;
}

} // namespace cudaq::realtime::test
