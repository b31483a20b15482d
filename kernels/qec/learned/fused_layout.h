// SPDX-License-Identifier: Apache-2.0
// Where the fused kernel of the learned predecoder keeps values and weights, and who computes what. Plain arithmetic:
// tests run it on the CPU. Terms are those of network_layout.h.
//
// One launch computes a shot. A block has `rows` neighbouring places for all layers. Places are the columns of its
// products and outputs the rows, 64 for each warp group: so weights are read from shared memory once for up to 256
// places. A layer's other blocks for the same places have the other 64 outputs, or other input channels ("parts"); they
// form a cluster and add their sums.
//
// Values of a layer, float16: [8 channels][place][8], so that each copy to shared memory is one piece. A stage of the
// products is nine taps of a slab for 16 channels: weights and values of a stage come by bulk copies to rings of
// buffers. Weights of the next layers are copied as soon as there is room for them.
#pragma once

#include "kernels/qec/learned/network_layout.h"

namespace cudaq::qec::realtime::gpu {

inline constexpr std::uint32_t kHalfOutputs = 64, kOctet = 8; ///< outputs of a warp group; channels of a piece
inline constexpr std::uint32_t kLayerStages = kGroups * kGroupStages;
inline constexpr std::uint32_t kHalfStageBytes =
    kStageTaps * 2 * kHalfOutputs * kHalfBytes;  ///< weights of a warp group
inline constexpr std::uint32_t kHeadOutputs = 8; ///< of the last layer, of which 3 are used
inline constexpr std::uint32_t kHeadStageBytes = kStageTaps * 2 * kHeadOutputs * kHalfBytes;
inline constexpr std::uint32_t kValueSlots = 6, kMaxWeightSlots = 12;
inline constexpr std::uint32_t kBlockColumns = 8;    ///< of the sums of a warp group: a thread has four of 8 x 16
inline constexpr std::uint32_t kColumnsBytes = 2048; ///< sums of 8 columns and 64 outputs

/// Weights of a middle layer: [64 outputs][group][tap][half][output][8 inputs].
CUDAQ_QEC_HOST_DEVICE constexpr std::size_t fused_weight(std::uint32_t tap, std::uint32_t input, std::uint32_t output) {
  const std::uint32_t group = output / kHalfOutputs * kGroups + input / kGroupChannels;
  const std::uint32_t halves = (group * kTaps + tap) * 2 + input % kGroupChannels / 8;
  return (std::size_t{halves} * kHalfOutputs + output % kHalfOutputs) * 8 + input % 8;
}
/// Weights of the last layer: [group][tap][half][8 outputs, of which 3 are used][8 inputs].
CUDAQ_QEC_HOST_DEVICE constexpr std::size_t fused_head_weight(std::uint32_t tap, std::uint32_t input,
                                                              std::uint32_t output) {
  const std::uint32_t halves = (input / kGroupChannels * kTaps + tap) * 2 + input % kGroupChannels / 8;
  return (std::size_t{halves} * 8 + output) * 8 + input % 8;
}

/// How the fused kernel runs on a device. rows 0: it does not.
struct fused_plan {
  std::uint32_t rows = 0;   ///< places of a block, a multiple of 32 up to 256
  std::uint32_t halves = 1; ///< warp groups of a block, each with 64 outputs: 1, 2
  std::uint32_t parts = 1;  ///< of the input channels: 1, 4 (with one warp group)
  std::uint32_t row_blocks = 0, slab_rows = 0, weight_slots = 0;

  /// For this grid and so much shared memory of a block: the other fields. Without room weight_slots is less than 2.
  CUDAQ_QEC_HOST_DEVICE constexpr void cover(const padded_grid &grid, std::size_t block_bytes, std::size_t words) {
    row_blocks = (grid.span() + rows - 1) / rows;
    slab_rows = copied_rows(grid);
    slab_rows += (12 - slab_rows % 8) % 8;
    weight_slots = 0;
    const std::size_t others = bytes(words);
    if (others < block_bytes)
      weight_slots = static_cast<std::uint32_t>((block_bytes - others) / weight_bytes());
    weight_slots = weight_slots < kMaxWeightSlots ? weight_slots : kMaxWeightSlots;
  }
  /// Blocks of the same places: a cluster.
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t beside() const { return 2 / halves * parts; }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t blocks() const { return row_blocks * beside(); }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t threads() const { return halves * 128 + 64; }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t stages() const { return kLayerStages / parts; }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t head_stages() const { return kLayerStages / beside(); }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t lowest(const padded_grid &grid, std::uint32_t row_block) const {
    return grid.place(0) + row_block * rows;
  }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t copied_rows(const padded_grid &grid) const {
    return rows + 2 * (grid.pitch() + 1);
  }
  /// Places of values of a layer: also those that the last blocks copy, which stay 0.
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t places(const padded_grid &grid) const {
    return lowest(grid, row_blocks) + grid.plane() + grid.pitch() + 1;
  }
  /// The first channel of an octet at a place.
  CUDAQ_QEC_HOST_DEVICE constexpr std::size_t value(const padded_grid &grid, std::uint32_t octet,
                                                    std::uint32_t place) const {
    return (std::size_t{octet} * places(grid) + place) * kOctet;
  }
  /// Blocks of rows whose values a block reads, from the first to the last.
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t first_near(const padded_grid &grid, std::uint32_t row_block) const {
    const std::uint32_t reach = grid.plane() + grid.pitch() + 1, begin = row_block * rows;
    return begin < reach ? 0 : (begin - reach) / rows;
  }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t last_near(const padded_grid &grid, std::uint32_t row_block) const {
    const std::uint32_t last = ((row_block + 1) * rows - 1 + grid.plane() + grid.pitch() + 1) / rows;
    return last < row_blocks ? last : row_blocks - 1;
  }
  // Shared memory: weights, values, sums of other blocks, those of the last layer, the words of the shot.
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t weight_bytes() const { return halves * kHalfStageBytes; }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t value_bytes() const { return 2 * slab_rows * kHalfBytes; }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t columns_of_part() const {
    return (rows / kBlockColumns + parts - 1) / parts;
  }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t values_at() const { return weight_slots * weight_bytes(); }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t sums_at() const { return values_at() + kValueSlots * value_bytes(); }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t head_sums_at() const {
    return sums_at() + (parts - 1) * columns_of_part() * halves * kColumnsBytes;
  }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t words_at() const { return head_sums_at() + halves * rows * 3 * 4; }
  CUDAQ_QEC_HOST_DEVICE constexpr std::size_t bytes(std::size_t words) const {
    return words_at() + words * sizeof(std::uint64_t);
  }
};

/// The kernels that there are.
struct fused_form {
  std::uint32_t rows, halves, parts;
};
inline constexpr fused_form kFusedForms[] = {{64, 1, 4},  {128, 1, 4}, {224, 1, 4},
                                             {192, 1, 1}, {192, 2, 1}, {256, 2, 1}};
inline constexpr std::uint32_t kLeastWeightSlots = 3;
inline constexpr std::size_t kFusedOwnBytes = 1024; ///< shared memory of a block beside that of the plan, at most

/// Words through which the blocks of a shot meet, in device memory. All 0 before a launch; a launch of one shot leaves
/// them so, those of resident blocks are set to 0 before the next start.
struct fused_meeting {
  std::uint32_t begun;   ///< twice the shots that have begun, and 1 if there are events
  std::uint32_t ended;   ///< blocks that have applied their corrections, of all shots
  std::uint32_t failed;  ///< blocks have waited too long; it stays
  std::uint32_t running; ///< resident blocks but the first one
  std::uint32_t led;     ///< 1: the leading block serves, 2: no shot follows
  std::uint32_t unused[3];
  struct alignas(32) {
    std::uint32_t blocks; ///< of the same places: beside() for each layer that they have stored
  } done[1];              ///< row_blocks

  static constexpr std::size_t bytes(std::uint32_t row_blocks) {
    return sizeof(fused_meeting) + row_blocks * sizeof(done[0]);
  }
};

} // namespace cudaq::qec::realtime::gpu
