// SPDX-License-Identifier: Apache-2.0
// Where the kernels of the learned predecoder keep values and weights. All of it is plain arithmetic: tests run it on
// the CPU.
//
// Values of a layer, float16: [group][place][16 channels]. A group is 16 channels, the depth of one product of the
// tensor cores. Places are the cells of a padded grid: each row has one place more, each plane one row more, and there
// are a plane before and one after. These are always 0, so all 27 neighbours of a cell are at fixed distances, and no
// kernel asks for the border.
//
// A block of the middle layers computes all 128 outputs of 64 to 256 neighbouring places. Places without a cell are
// computed, too, and not stored: then the neighbours of all rows of a product, for one tap, are neighbouring rows of
// shared memory, as the tensor cores of a warp group want them. The block takes the groups one after another. Of each
// it copies the values of its places and their neighbours to shared memory once: three slabs of neighbouring places,
// for the layer before, of and after a cell. Weights come in stages of nine taps, those of one slab. If the grid is
// small, a cluster of blocks shares the groups, and then adds its sums in the order of the blocks.
//
// In shared memory the two halves of the 16 channels of a group are apart: first the 16 bytes of channels 0 to 7 of all
// rows, then those of channels 8 to 15. Eight rows are 128 bytes in one piece, a core matrix of wgmma, from whichever
// row they begin, and no two of them are in the same banks.
#pragma once

#include "cudaq/qec/decoding/decode_status.h"

#include <cstddef>
#include <cstdint>

namespace cudaq::qec::realtime::gpu {

inline constexpr std::uint32_t kNetworkChannels = 128, kTaps = 27, kGroupChannels = 16;
inline constexpr std::uint32_t kGroups = kNetworkChannels / kGroupChannels;
inline constexpr std::uint32_t kStageTaps = 9, kGroupStages = kTaps / kStageTaps;
inline constexpr std::uint32_t kHalfBytes = kGroupChannels;                   ///< of a row: 8 values
inline constexpr std::uint32_t kTapBytes = 2 * kNetworkChannels * kHalfBytes; ///< of weights
inline constexpr std::uint32_t kStageBytes = kStageTaps * kTapBytes;          ///< of weights
inline constexpr std::uint32_t kStagesAhead = 2, kStageBuffers = kStagesAhead + 1;
inline constexpr std::uint32_t kBlockThreads = 256, kBlockWarps = 8;
inline constexpr std::uint32_t kTileRows = 64;                    ///< of a product of a warp group
inline constexpr std::uint32_t kMaxTiles = 4;                     ///< of a block
inline constexpr std::uint32_t kWarpsAcross = 4;                  ///< without wgmma: of the outputs; two of the rows
inline constexpr std::uint32_t kSumStride = kNetworkChannels + 8; ///< floats of a cell's sums: no bank twice
inline constexpr std::uint32_t kUnit = 16;      ///< bytes of a copy to shared memory, and of an address of wgmma
inline constexpr std::uint32_t kHeadCells = 32; ///< of a block of the last layer
inline constexpr std::uint32_t kNoDetector32 = UINT32_MAX, kNoCell = UINT32_MAX;

/// The cells and the places of the padded grid.
struct padded_grid {
  std::uint32_t layers = 0, width = 0;

  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t cells() const { return layers * width * width; }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t pitch() const { return width + 1; }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t plane() const { return pitch() * pitch(); }
  /// Places before the plane before the first one, for its neighbours.
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t front() const { return pitch() + 1; }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t places() const { return front() + (layers + 2) * plane(); }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t place(std::uint32_t cell) const {
    const std::uint32_t row = cell / width, j = cell - row * width, t = row / width, i = row - t * width;
    return front() + (t + 1) * plane() + i * pitch() + j;
  }
  /// Places from that of the first cell to that of the last one.
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t span() const { return place(cells() - 1) - place(0) + 1; }
  /// For the places of the span.
  CUDAQ_QEC_HOST_DEVICE constexpr bool has_cell(std::uint32_t of) const {
    const std::uint32_t in_plane = (of - front()) % plane();
    return in_plane / pitch() < width && in_plane % pitch() < width;
  }
  /// From a place to the neighbour of tap (t + 1) * 9 + (i + 1) * 3 + (j + 1).
  CUDAQ_QEC_HOST_DEVICE constexpr std::int32_t distance(std::uint32_t tap) const {
    const auto step = [](std::uint32_t n) { return static_cast<std::int32_t>(n) - 1; };
    return step(tap / 9) * static_cast<std::int32_t>(plane()) + step(tap / 3 % 3) * static_cast<std::int32_t>(pitch()) +
           step(tap % 3);
  }
  /// The first channel of a group at a place, in values of a layer.
  CUDAQ_QEC_HOST_DEVICE constexpr std::size_t value(std::uint32_t group, std::uint32_t place) const {
    return (std::size_t{group} * places() + place) * kGroupChannels;
  }
};

/// The places of a block of the middle layers; the last block may have fewer than `rows`.
struct block_places {
  std::uint32_t lowest, highest;

  CUDAQ_QEC_HOST_DEVICE constexpr block_places(const padded_grid &grid, std::uint32_t number, std::uint32_t rows)
      : lowest(grid.place(0) + number * rows),
        highest(grid.place(0) + ((number + 1) * rows < grid.span() ? (number + 1) * rows : grid.span()) - 1) {}
  /// Places of one slab: it begins one row and one place before the lowest.
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t slab_places(const padded_grid &grid) const {
    return highest - lowest + 1 + 2 * (grid.pitch() + 1);
  }
  /// The first place of slab 0 to 2.
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t slab_begin(const padded_grid &grid, std::uint32_t slab) const {
    return lowest + slab * grid.plane() - grid.plane() - grid.pitch() - 1;
  }
};

/// Where lane `lane` of ldmatrix finds its row of a 16 x 16 tile of places: the row in the tile, and the half.
CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t lane_row(std::uint32_t lane) { return lane % 16; }
CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t lane_row_half(std::uint32_t lane) { return lane / 16; }
/// The same for 16 outputs: two tiles of 8, each with its two halves.
CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t lane_output(std::uint32_t lane) { return lane / 16 * 8 + lane % 8; }
CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t lane_output_half(std::uint32_t lane) { return lane / 8 % 2; }

/// From the first row of the slabs, for the neighbour (-1, -1, -1) of a block's first place, to that of another tap.
CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t row_of_tap(const padded_grid &grid, std::uint32_t slab_rows,
                                                         std::uint32_t tap) {
  return tap / 9 * slab_rows + tap / 3 % 3 * grid.pitch() + tap % 3;
}

/// Where wgmma finds a matrix: in core matrices of eight rows of 16 bytes; those of the next eight rows are 128 bytes
/// after them, those of the other half of the channels `half_bytes`. Rows may be added to the result. Addresses of
/// shared memory have the rank of the block in its cluster from bit 24 on; wgmma takes the low 18 bits, an address in
/// the memory of its own block.
CUDAQ_QEC_HOST_DEVICE constexpr std::uint64_t matrix_at(std::uint32_t address, std::uint32_t half_bytes) {
  return std::uint64_t{address % (1u << 18) / kUnit} | std::uint64_t{half_bytes / kUnit} << 16 |
         std::uint64_t{8 * kHalfBytes / kUnit} << 32;
}

/// Weights of a middle layer, float16: [group][tap][half][output][8 inputs].
CUDAQ_QEC_HOST_DEVICE constexpr std::size_t middle_weight(std::uint32_t tap, std::uint32_t input,
                                                          std::uint32_t output) {
  const std::uint32_t halves = (input / kGroupChannels * kTaps + tap) * 2 + input % kGroupChannels / 8;
  return (std::size_t{halves} * kNetworkChannels + output) * 8 + input % 8;
}
inline constexpr std::size_t kMiddleWeights = std::size_t{kTaps} * kNetworkChannels * kNetworkChannels;

/// Weights of the last layer, float16: [group][tap][lane][4]. Lane has output lane / 4 and inputs 4 * (lane % 4) to + 3
/// of the group; there are 8 outputs, of which 3 are used.
CUDAQ_QEC_HOST_DEVICE constexpr std::size_t head_weight(std::uint32_t tap, std::uint32_t input, std::uint32_t output) {
  const std::uint32_t lane = output * 4 + input % kGroupChannels / 4;
  return ((std::size_t{input} / kGroupChannels * kTaps + tap) * 32 + lane) * 4 + input % 4;
}
inline constexpr std::size_t kHeadWeights = std::size_t{kTaps} * kNetworkChannels * 8;

/// Weights of the first layer, float32: [tap][events of X, of Z][output].
CUDAQ_QEC_HOST_DEVICE constexpr std::size_t first_weight(std::uint32_t tap, std::uint32_t what, std::uint32_t output) {
  return (std::size_t{tap} * 2 + what) * kNetworkChannels + output;
}
inline constexpr std::size_t kFirstWeights = std::size_t{kTaps} * 2 * kNetworkChannels;

/// How the middle layers run on a device.
struct layer_plan {
  std::uint32_t tiles = 1; ///< a block has 64 * tiles rows
  std::uint32_t parts = 1; ///< blocks of a cluster: 1, 2, 4, 8
  std::uint32_t clusters = 0;
  std::uint32_t slab_rows = 0; ///< 4 more than a multiple of 8, so the two halves of a row are in different banks

  /// For this grid: clusters and slab_rows.
  CUDAQ_QEC_HOST_DEVICE constexpr void cover(const padded_grid &grid) {
    clusters = (grid.span() + rows() - 1) / rows();
    slab_rows = rows() + 2 * (grid.pitch() + 1);
    slab_rows += (12 - slab_rows % 8) % 8;
  }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t rows() const { return kTileRows * tiles; }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t half_bytes() const { return 3 * slab_rows * kHalfBytes; }
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t group_bytes() const { return 2 * half_bytes(); }
  /// The values of the next group are copied while those of this one are used.
  CUDAQ_QEC_HOST_DEVICE constexpr std::uint32_t value_buffers() const { return parts == kGroups ? 1 : 2; }
  /// Shared memory of a block. The sums take the place of values and weights.
  CUDAQ_QEC_HOST_DEVICE constexpr std::size_t bytes() const {
    const std::size_t working = value_buffers() * std::size_t{group_bytes()} + kStageBuffers * std::size_t{kStageBytes};
    const std::size_t sums = std::size_t{rows()} * kSumStride * sizeof(float);
    return working > sums ? working : sums;
  }
};

} // namespace cudaq::qec::realtime::gpu
