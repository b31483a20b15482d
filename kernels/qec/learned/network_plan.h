// SPDX-License-Identifier: Apache-2.0
// What the CPU prepares for the kernels of the learned predecoder: weights and tables in their layout, and the plan.
// Needs no CUDA.
#pragma once

#include "kernels/qec/learned/fused_layout.h"
#include "lib/qec/decoding/learned/memory_lattice.h"
#include "lib/qec/decoding/learned/predecoder_network.h"

#include <functional>
#include <vector>

namespace cudaq::qec::realtime::gpu {

/// The nearest float16, ties to even; infinite if it is too large.
[[nodiscard]] std::uint16_t to_half(float value) noexcept;

/// The weights as network_layout.h has them. Channels that a network does not have are 0.
struct packed_network {
  std::uint32_t middles = 0;
  std::vector<float> first;                            ///< kFirstWeights
  std::vector<std::uint16_t> middle;                   ///< kMiddleWeights for each
  std::vector<float> biases;                           ///< kNetworkChannels for each middle layer
  std::vector<std::uint16_t> head;                     ///< kHeadWeights
  std::vector<std::uint16_t> fused_middle, fused_head; ///< the same in the order of the fused kernel
  float head_biases[3] = {};
};
/// Refused, with the reason: more than 128 channels, and weights that no float16 holds.
[[nodiscard]] expected<packed_network> pack_network(const predecoder_network &network);

[[nodiscard]] inline padded_grid padded(network_grid grid) noexcept { return {grid.layers, grid.width}; }
/// By place: detector * 2 + kind of the detector there, or kNoDetector32.
[[nodiscard]] std::vector<std::uint32_t> detectors_by_place(const memory_lattice &lattice);
/// By place: its cell, or kNoCell.
[[nodiscard]] std::vector<std::uint32_t> cells_by_place(const padded_grid &grid, std::uint32_t places);
/// By cell: the outputs of the first layer of a shot without events, before they are cut at 0.
[[nodiscard]] std::vector<float> constant_part(const predecoder_network &network, const memory_lattice &lattice);

/// The clusters of a plan that the device runs at a time; 0: none.
using clusters_at_once = std::function<std::uint32_t(const layer_plan &)>;
/// The plan with which `shots_at_once` shots, each with its own kernels, take the least estimated time. With one shot
/// that is the least time of a shot: many blocks share its work, and add their sums. With more shots than fill the GPU
/// so, it is the highest rate: fewer blocks for each, which do less beside their products. Refused: a grid whose rows
/// are so long that no block has the memory.
[[nodiscard]] expected<layer_plan> plan_layers(padded_grid grid, std::uint32_t processors, std::size_t block_bytes,
                                               const clusters_at_once &at_once, std::uint32_t shots_at_once = 1);

/// The blocks of the fused kernel that the device runs at a time with a plan; 0: none.
using blocks_at_once = std::function<std::uint32_t(const fused_plan &)>;
/// The plan of the fused kernel with which `shots_at_once` shots take the least estimated time. stay: the blocks of all
/// of them must find room at a time; without it those of one. rows 0: there is none. words: of a shot.
[[nodiscard]] fused_plan plan_fused(padded_grid grid, std::size_t block_bytes, std::size_t words,
                                    const blocks_at_once &at_once, std::uint32_t shots_at_once = 1, bool stay = false);

} // namespace cudaq::qec::realtime::gpu
