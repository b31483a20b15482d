// SPDX-License-Identifier: Apache-2.0
// How many thread blocks a chain of relay-bp gets, from what a GPU has and what others have taken. No CUDA.
#pragma once

#include "kernels/qec/relay_bp/relay_bp_job.h"
#include "lib/qec/decoding/qec_expected.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace cudaq::qec::realtime::gpu {

/// Numbers of blocks of a chain: 1, 2, 4, 8.
inline constexpr std::size_t kRelaySizes = 4;
static_assert(1U << (kRelaySizes - 1) == kMaxParts);

/// Chains, by the blocks of each: entry k is those of 2^k blocks.
struct relay_chain_counts {
  std::array<std::uint32_t, kRelaySizes> of_size{};

  [[nodiscard]] std::uint32_t blocks() const noexcept;
  /// `blocks`: 1, 2, 4 or 8, of each of the `chains`.
  void add(std::uint32_t chains, std::uint32_t blocks) noexcept;
  void remove(std::uint32_t chains, std::uint32_t blocks) noexcept;
};

/// A GPU. A block takes a multiprocessor, and the blocks of a cluster are in one group of multiprocessors.
struct relay_gpu {
  std::string name;
  std::uint32_t multiprocessors = 0;
  relay_chain_counts max_chains; ///< chains of each size that fit on it alone; 0: none, it has no clusters
  relay_chain_counts taken;      ///< those that are on it

  /// Number of further chains of `blocks` blocks that fit wherever the chains in `taken` run. A chain of n blocks can
  /// take the room of n / blocks of them, rounded up.
  [[nodiscard]] std::uint32_t room_for(std::uint32_t blocks) const noexcept;
};

/// The numbers of blocks of a chain to try for `chains` chains, the best one first, never none; the last one is 1 if
/// `blocks` is 0. blocks: what the user wants; 0: the most with which the chains have room and leave half of the GPU,
/// then fewer. Fails with the numbers if there is no room, or the GPU has no clusters.
expected<std::vector<std::uint32_t>> relay_blocks_to_try(const relay_gpu &gpu, std::uint32_t chains,
                                                         std::uint32_t blocks);

} // namespace cudaq::qec::realtime::gpu
