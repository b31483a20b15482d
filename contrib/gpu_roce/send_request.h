// SPDX-License-Identifier: Apache-2.0
// A send request of an mlx5 adapter (WQE), 64 bytes. The layout is that of the public headers of rdma-core
// (infiniband/mlx5dv.h): a control segment, then the payload itself or a pointer to it.
//
//   word   0                1                2       3    4                    5 ...
//   large  index, SEND      queue, 2 units   flags   0    length               key, address (2 words)
//   small  index, SEND      queue, units     flags   0    length | inline bit  up to 44 bytes of payload
//
// A unit has 16 bytes. Numbers are big-endian.
#pragma once

#include "cudaq/realtime/detail/base/host_device.h"

#include <cstdint>
#include <cstring>

namespace cudaq::realtime::detail {

struct alignas(16) send_request {
  std::uint32_t word[16];
};
static_assert(sizeof(send_request) == 64);

inline constexpr std::uint32_t kMaxInlineBytes = 44;

CUDAQ_REALTIME_HOST_DEVICE inline std::uint32_t big_endian(std::uint32_t x) {
  return x >> 24 | (x >> 8 & 0xFF00u) | (x << 8 & 0xFF0000u) | x << 24;
}

/// `index`: of the request in its queue. `queue_shifted`: the number of the queue pair, shifted left by 8. `answer`:
/// where the GPU reads `bytes` bytes of payload; `remote`: the same place for the adapter. `key`: of that memory.
CUDAQ_REALTIME_HOST_DEVICE inline void make_send_request(send_request &out, std::uint64_t index,
                                                         std::uint32_t queue_shifted, const void *answer,
                                                         std::uint32_t bytes, std::uint64_t remote, std::uint32_t key) {
  constexpr std::uint32_t kSend = 0x0a, kCompletionOnError = 1u << 2, kInline = 0x80000000u;
  const bool small = bytes <= kMaxInlineBytes;
  const std::uint32_t units = small ? 1 + (4 + bytes + 15) / 16 : 2;
  out.word[0] = big_endian((static_cast<std::uint32_t>(index) & 0xFFFF) << 8 | kSend);
  out.word[1] = big_endian(queue_shifted | units);
  out.word[2] = big_endian(kCompletionOnError);
  out.word[3] = 0;
  if (small) {
    out.word[4] = big_endian(bytes | kInline);
    std::memcpy(&out.word[5], answer, bytes);
    return;
  }
  out.word[4] = big_endian(bytes);
  out.word[5] = big_endian(key);
  out.word[6] = big_endian(static_cast<std::uint32_t>(remote >> 32));
  out.word[7] = big_endian(static_cast<std::uint32_t>(remote));
}

} // namespace cudaq::realtime::detail
