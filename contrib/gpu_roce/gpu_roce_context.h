// SPDX-License-Identifier: Apache-2.0
// What the provider gives to its device hooks: the transport_ctx of the shape `unified`, in pinned memory that the GPU
// reads. The hooks copy it when they attach, and write back the two indices.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cudaq::realtime::detail {

inline constexpr std::uint32_t kGpuRoceContextMagic = 0x47524331; // "GRC1"; changes with the layout

struct gpu_roce_context {
  std::uint32_t magic;
  std::uint32_t num_pages;
  std::uint32_t page_size;
  std::uint32_t frame_size;   ///< bytes of an answer
  std::uint32_t key;          ///< of the pages' memory
  std::uint32_t blue_flame;   ///< 1: the GPU writes send requests to the adapter itself; 0: a proxy thread does
  void *queue_pair;           ///< doca_gpu_dev_verbs_qp
  std::uint8_t *pages;        ///< num_pages pages of requests, then as many of answers
  std::uint64_t pages_remote; ///< the address of `pages` for the adapter
  std::uint64_t received;     ///< index of the next completion
  std::uint64_t sent;         ///< index of the next send request
};
static_assert(sizeof(gpu_roce_context) == 64 && offsetof(gpu_roce_context, queue_pair) == 24 &&
              offsetof(gpu_roce_context, received) == 48);

} // namespace cudaq::realtime::detail
