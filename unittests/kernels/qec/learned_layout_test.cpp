// SPDX-License-Identifier: Apache-2.0
// The kernels of the learned predecoder, step by step with their layouts and fragments of the tensor cores, on the CPU.
// The reference is the network on the CPU.
#include "kernels/qec/learned/network_plan.h"

#include "lib/qec/decoding/learned/learned_predecoder.h"
#include "unittests/qec/qec_test_support.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <set>

namespace cudaq::qec::realtime::test {
namespace {

using namespace cudaq::qec::realtime::gpu;

const std::string kWeights = std::string(CUDAQ_TEST_WEIGHTS) + "/surface_128x6.safetensors";
const std::string kTiny = std::string(CUDAQ_TEST_GOLDEN) + "/tiny.safetensors";

float half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1F, fraction = bits & 0x3FF;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                   : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}
std::vector<float> half_values(const std::vector<std::uint16_t> &bits) {
  std::vector<float> values;
  for (const std::uint16_t b : bits)
    values.push_back(half_value(b));
  return values;
}
float rounded(float value) { return half_value(to_half(std::min(std::max(value, 0.0f), 65504.0f))); }

/// A product of the tensor cores: 16 x 16 times 16 x 8. Lane l has, of a, rows l / 4 and l / 4 + 8, columns
/// 2 * (l % 4), + 1, and both + 8; of b, column l / 4 and the same rows; of the sums, the rows of a and columns
/// 2 * (l % 4), + 1 (PTX, mma.m16n8k16). a[lane][register][half].
using a_fragment = std::array<std::array<std::array<float, 2>, 4>, 32>;
using b_fragment = std::array<std::array<std::array<float, 2>, 2>, 32>;
using sums_fragment = std::array<std::array<float, 4>, 32>;
void multiply(sums_fragment &sums, const a_fragment &a, const b_fragment &b) {
  float left[16][16], right[8][16];
  for (std::size_t lane = 0; lane < 32; ++lane)
    for (std::size_t r = 0; r < 4; ++r)
      for (std::size_t h = 0; h < 2; ++h) {
        left[lane / 4 + 8 * (r % 2)][lane % 4 * 2 + h + 8 * (r / 2)] = a[lane][r][h];
        right[lane / 4][lane % 4 * 2 + h + 8 * (r % 2)] = b[lane][r % 2][h];
      }
  for (std::size_t lane = 0; lane < 32; ++lane)
    for (std::size_t r = 0; r < 4; ++r) {
      const float *const x = left[lane / 4 + 8 * (r / 2)], *const y = right[lane % 4 * 2 + r % 2];
      float sum = 0;
      for (std::size_t k = 0; k < 16; ++k)
        sum += x[k] * y[k];
      sums[lane][r] += sum;
    }
}

/// Shared memory, a float for each float16. Reads and writes are checked.
struct shared_memory {
  explicit shared_memory(std::size_t bytes) : values(bytes / 2, std::nanf("")) {}
  float &at(std::size_t byte) { return values.at(byte / 2); }
  std::vector<float> values;
};
/// ldmatrix x4: address_of(lane) is that of the row that the lane names; register r of a lane is of the rows that lanes
/// 8 * r to 8 * r + 7 name.
template <class Address>
a_fragment load_tile(shared_memory &memory, const Address &address_of) {
  a_fragment tile{};
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    for (std::uint32_t r = 0; r < 4; ++r)
      for (std::uint32_t h = 0; h < 2; ++h)
        tile[lane][r][h] = memory.at(address_of(8 * r + lane / 4) + lane % 4 * 4 + 2 * h);
  return tile;
}

/// Where wgmma finds element (row, k) of a matrix without swizzle whose rows have their channels in one piece (PTX,
/// "Matrix descriptor"): core matrices of eight rows of 16 bytes, with the distances from one to the next in rows and
/// in channels in fields of 14 bits, in units of 16 bytes.
std::uint32_t element_at(std::uint64_t matrix, std::uint32_t row, std::uint32_t k) {
  const auto field = [&](unsigned from) { return static_cast<std::uint32_t>(matrix >> from & 0x3FFF) * 16; };
  return field(0) + row / 8 * field(32) + row % 8 * 16 + k / 8 * field(16) + k % 8 * 2;
}
/// Addresses of shared memory of a block of a cluster begin with it.
constexpr std::uint32_t kRankBit = 24;

enum class product : std::uint8_t { of_warps, of_warp_groups };

/// The middle kernel: each block of each cluster, with its copies, stages, sums and their addition.
class emulated_layer {
public:
  emulated_layer(padded_grid grid, const layer_plan &plan, product how, const std::vector<float> &weights,
                 const float *biases)
      : grid_(grid), plan_(plan), how_(how), weights_(weights), biases_(biases) {}

  void run(const std::vector<float> &from, std::vector<float> &to) {
    for (std::uint32_t cluster = 0; cluster < plan_.clusters; ++cluster) {
      const block_places block(grid_, cluster, plan_.rows());
      std::vector<std::vector<float>> sums;
      for (std::uint32_t rank = 0; rank < plan_.parts; ++rank)
        sums.push_back(block_sums(block, rank, from));
      for (std::uint32_t place = block.lowest; place <= block.highest; ++place)
        for (std::uint32_t channel = 0; grid_.has_cell(place) && channel < kNetworkChannels; ++channel) {
          const std::size_t at = grid_.value(channel / kGroupChannels, place) + channel % kGroupChannels;
          float sum = 0;
          for (const auto &part : sums)
            sum += part[(place - block.lowest) * kSumStride + channel];
          to[at] = rounded(sum + biases_[channel] + from[at]);
        }
    }
  }

private:
  std::vector<float> block_sums(const block_places &block, std::uint32_t rank, const std::vector<float> &from) {
    const std::uint32_t groups = kGroups / plan_.parts, stage_memory = plan_.group_bytes();
    std::vector<float> sums(std::size_t{plan_.rows()} * kSumStride);
    const std::uint32_t rows = block.highest - block.lowest + 1; // the kernel computes all, and stores these
    shared_memory memory(stage_memory + kStageBytes);
    EXPECT_LE(block.slab_places(grid_), plan_.slab_rows);
    for (std::uint32_t group = 0; group < groups; ++group) {
      std::ranges::fill(memory.values, 0.0f); // rows after the last place are read, and not stored
      for (std::uint32_t slab = 0; slab < 3; ++slab)
        for (std::uint32_t unit = 0; unit < 2 * block.slab_places(grid_); ++unit)
          for (std::uint32_t k = 0; k < 8; ++k)
            memory.at(unit % 2 * plan_.half_bytes() + (slab * plan_.slab_rows + unit / 2) * kHalfBytes + 2 * k) =
                from.at(grid_.value(rank * groups + group, block.slab_begin(grid_, slab)) + unit * 8 + k);
      for (std::uint32_t stage = 0; stage < kGroupStages; ++stage) {
        const std::size_t begin = (std::size_t{rank * groups + group} * kGroupStages + stage) * (kStageBytes / 2);
        std::copy_n(weights_.begin() + static_cast<std::ptrdiff_t>(begin), kStageBytes / 2,
                    memory.values.begin() + stage_memory / 2);
        for (std::uint32_t tap = 0; tap < kStageTaps; ++tap) {
          const std::uint32_t row = row_of_tap(grid_, plan_.slab_rows, stage * kStageTaps + tap);
          const std::uint32_t weights = stage_memory + tap * kTapBytes;
          if (how_ == product::of_warps)
            for (std::uint32_t warp = 0; warp < kBlockWarps; ++warp)
              multiply_in_warp(warp, rows, row * kHalfBytes, weights, memory, sums);
          else
            for (std::uint32_t group_of_warps = 0; group_of_warps < 2; ++group_of_warps)
              multiply_in_warp_group(group_of_warps, rows, matrix_at(rank << kRankBit, plan_.half_bytes()) + row,
                                     matrix_at((rank << kRankBit) + weights, kTapBytes / 2), memory, sums);
        }
      }
    }
    return sums;
  }
  void multiply_in_warp_group(std::uint32_t number, std::uint32_t rows, std::uint64_t values, std::uint64_t weights,
                              shared_memory &memory, std::vector<float> &sums) {
    float b[kGroupChannels][64];
    for (std::uint32_t k = 0; k < kGroupChannels; ++k)
      for (std::uint32_t n = 0; n < 64; ++n)
        b[k][n] = memory.at(element_at(weights + number * 64, n, k));
    for (std::uint32_t row = 0; row < rows; ++row)
      for (std::uint32_t k = 0; k < kGroupChannels; ++k) {
        const float a = memory.at(element_at(values, row, k));
        for (std::uint32_t n = 0; n < 64; ++n)
          sums[row * kSumStride + number * 64 + n] += a * b[k][n];
      }
  }
  void multiply_in_warp(std::uint32_t warp, std::uint32_t rows, std::uint32_t values, std::uint32_t weights,
                        shared_memory &memory, std::vector<float> &sums) {
    const std::uint32_t tiles = 2 * plan_.tiles, first_row = warp / kWarpsAcross * 16 * tiles;
    const std::uint32_t first_output = warp % kWarpsAcross * 32;
    a_fragment b[2];
    for (std::uint32_t n = 0; n < 2; ++n)
      b[n] = load_tile(memory, [&](std::uint32_t lane) {
        return weights + lane_output_half(lane) * (kTapBytes / 2) +
               (first_output + lane_output(lane) + 16 * n) * kHalfBytes;
      });
    for (std::uint32_t m = 0; m < tiles && first_row + 16 * m < rows; ++m) {
      const a_fragment a = load_tile(memory, [&](std::uint32_t lane) {
        return values + lane_row_half(lane) * plan_.half_bytes() + (first_row + 16 * m + lane_row(lane)) * kHalfBytes;
      });
      for (std::uint32_t n = 0; n < 4; ++n) {
        b_fragment right{};
        for (std::size_t lane = 0; lane < 32; ++lane)
          right[lane] = {b[n / 2][lane][n % 2 * 2], b[n / 2][lane][n % 2 * 2 + 1]};
        sums_fragment products{};
        multiply(products, a, right);
        for (std::uint32_t lane = 0; lane < 32; ++lane)
          for (std::uint32_t r = 0; r < 4; ++r)
            sums[(first_row + 16 * m + 8 * (r / 2) + lane / 4) * kSumStride + first_output + 8 * n + lane % 4 * 2 +
                 r % 2] += products[lane][r];
      }
    }
  }

  const padded_grid grid_;
  const layer_plan plan_;
  const product how_;
  const std::vector<float> &weights_;
  const float *const biases_;
};

/// A middle layer of the fused kernel: each block with its copies to shared memory and its products. Values are in the
/// order of its plan. For speed only every eighth output of a place, from place % 8 on; the others stay 0.
constexpr std::uint32_t kSomeOutputs = 8;
std::vector<float> emulated_fused_layer(const padded_grid &grid, const fused_plan &plan, const std::vector<float> &from,
                                        const std::vector<float> &weights, const std::vector<float> &biases) {
  std::vector<float> sums(std::size_t{plan.row_blocks} * plan.rows * kNetworkChannels), to(from.size());
  shared_memory memory(plan.weight_bytes() + plan.value_bytes());
  for (std::uint32_t row_block = 0; row_block < plan.row_blocks; ++row_block)
    for (std::uint32_t inside = 0; inside < plan.beside(); ++inside)
      for (std::uint32_t k = 0; k < plan.stages(); ++k) {
        const std::uint32_t stage = inside % plan.parts * plan.stages() + k, outputs = inside / plan.parts;
        const std::uint32_t begin =
            plan.lowest(grid, row_block) + stage % kGroupStages * grid.plane() - grid.plane() - grid.pitch() - 1;
        for (std::uint32_t half = 0; half < plan.halves; ++half)
          std::copy_n(weights.begin() + ((outputs + half) * kLayerStages + stage) * (kHalfStageBytes / 2),
                      kHalfStageBytes / 2, memory.values.begin() + half * (kHalfStageBytes / 2));
        for (std::uint32_t half = 0; half < 2; ++half)
          for (std::uint32_t at = 0; at < plan.copied_rows(grid) * kOctet; ++at)
            memory.at(plan.weight_bytes() + half * plan.slab_rows * kHalfBytes + 2 * at) =
                from.at(plan.value(grid, 2 * (stage / kGroupStages) + half, begin) + at);
        for (std::uint32_t group = 0; group < plan.halves; ++group)
          for (std::uint32_t tap = 0; tap < kStageTaps; ++tap) {
            const std::uint64_t a = matrix_at(group * kHalfStageBytes, kHalfOutputs * kHalfBytes) +
                                    tap * (2 * kHalfOutputs * kHalfBytes / kUnit);
            const std::uint64_t b =
                matrix_at(plan.weight_bytes(), plan.slab_rows * kHalfBytes) + row_of_tap(grid, 0, tap);
            for (std::uint32_t row = 0; row < plan.rows; ++row)
              for (std::uint32_t out = row % kSomeOutputs; out < kHalfOutputs; out += kSomeOutputs)
                for (std::uint32_t in = 0; in < kGroupChannels; ++in)
                  sums[(std::size_t{row_block} * plan.rows + row) * kNetworkChannels +
                       (outputs + group) * kHalfOutputs + out] +=
                      memory.at(element_at(a, out, in)) * memory.at(element_at(b, row, in));
          }
      }
  for (std::uint32_t cell = 0; cell < grid.cells(); ++cell) {
    const std::uint32_t row = grid.place(cell) - grid.place(0);
    for (std::uint32_t out = row % kSomeOutputs; out < kNetworkChannels; out += kSomeOutputs) {
      const std::size_t at = plan.value(grid, out / kOctet, grid.place(cell)) + out % kOctet;
      to[at] = rounded(sums[std::size_t{row} * kNetworkChannels + out] + biases[out] + from[at]);
    }
  }
  return to;
}

fused_plan fused_plan_of(const padded_grid &grid, std::uint32_t rows, std::uint32_t halves, std::uint32_t parts) {
  fused_plan plan{.rows = rows, .halves = halves, .parts = parts};
  plan.cover(grid, 226 * 1024, 64);
  return plan;
}

layer_plan plan_of(padded_grid grid, std::uint32_t tiles, std::uint32_t parts) {
  layer_plan plan;
  plan.tiles = tiles;
  plan.parts = parts;
  plan.cover(grid);
  return plan;
}

TEST(LearnedLayout, EachCellHasItsNeighboursAtFixedDistancesAndZerosAroundTheGrid) {
  for (const padded_grid grid : {padded_grid{1, 1}, {2, 3}, {6, 6}, {5, 4}, {3, 14}}) {
    std::map<std::uint32_t, std::uint32_t> cell_at;
    for (std::uint32_t cell = 0; cell < grid.cells(); ++cell)
      EXPECT_TRUE(cell_at.emplace(grid.place(cell), cell).second);
    const auto w = static_cast<int>(grid.width), layers = static_cast<int>(grid.layers);
    for (int t = 0, cell = 0; t < layers; ++t)
      for (int i = 0; i < w; ++i)
        for (int j = 0; j < w; ++j, ++cell)
          for (int tap = 0; tap < 27; ++tap) {
            const int at_t = t + tap / 9 - 1, at_i = i + tap / 3 % 3 - 1, at_j = j + tap % 3 - 1;
            const bool inside = at_t >= 0 && at_t < layers && at_i >= 0 && at_i < w && at_j >= 0 && at_j < w;
            const std::int64_t near = std::int64_t{grid.place(static_cast<std::uint32_t>(cell))} +
                                      grid.distance(static_cast<std::uint32_t>(tap));
            ASSERT_TRUE(near >= 0 && near < grid.places());
            const auto found = cell_at.find(static_cast<std::uint32_t>(near));
            ASSERT_EQ(found != cell_at.end(), inside);
            ASSERT_EQ(near >= grid.place(0) && near < grid.place(0) + grid.span() &&
                          grid.has_cell(static_cast<std::uint32_t>(near)),
                      inside);
            if (inside) {
              ASSERT_EQ(found->second, static_cast<std::uint32_t>((at_t * w + at_i) * w + at_j));
            }
          }
  }
}

TEST(LearnedLayout, FourNeighbouringRowsWithBothHalvesAreInDifferentBanks) {
  for (const std::uint32_t width : {3u, 8u, 14u, 22u})
    for (std::uint32_t tiles = 1; tiles <= kMaxTiles; ++tiles) {
      const layer_plan plan = plan_of({width, width}, tiles, 1);
      EXPECT_EQ(plan.half_bytes() % 128, 64u);
      EXPECT_EQ(plan.group_bytes() % 128, 0u) << "the weights after it are aligned";
    }
}

TEST(LearnedLayout, MatricesOfEachBlockOfAClusterAreInItsOwnMemory) {
  constexpr std::uint32_t kReserved = 1024; // of the system, before the memory of the block
  for (const std::uint32_t width : {1u, 3u, 14u, 22u, 40u})
    for (std::uint32_t tiles = 1; tiles <= kMaxTiles; ++tiles)
      for (const std::uint32_t parts : {1u, 2u, 4u, 8u}) {
        const padded_grid grid{width, width};
        const layer_plan plan = plan_of(grid, tiles, parts);
        if (plan.bytes() > 227 * 1024)
          continue;
        for (std::uint32_t rank = 0; rank < parts; ++rank) {
          const std::uint32_t begin = (rank << kRankBit) + kReserved;
          const std::uint32_t weights = plan.value_buffers() * plan.group_bytes();
          const std::uint64_t a = matrix_at(begin + weights - plan.group_bytes(), plan.half_bytes());
          const std::uint32_t last_row = 2 * plan.slab_rows + row_of_tap(grid, 0, kStageTaps - 1);
          EXPECT_EQ(element_at(a, 0, 0), kReserved + weights - plan.group_bytes());
          EXPECT_LE(element_at(a + last_row, plan.rows() - 1, 15) + 2, kReserved + weights) << width;
          const std::uint64_t b = matrix_at(begin + weights + (kStageBuffers - 1) * kStageBytes, kTapBytes / 2);
          EXPECT_EQ(element_at(b + (kStageTaps - 1) * (kTapBytes / kUnit) + 64, 63, 15) + 2,
                    kReserved + weights + kStageBuffers * kStageBytes);
          EXPECT_LE(weights + kStageBuffers * kStageBytes, plan.bytes());
        }
      }
}

TEST(LearnedLayout, ValuesOf16BitsAreTheNearestWithTiesToEven) {
  EXPECT_EQ(to_half(1), 0x3C00);
  EXPECT_EQ(to_half(-2), 0xC000);
  EXPECT_EQ(to_half(1 + 0x1p-11f), 0x3C00);
  EXPECT_EQ(to_half(1 + 3 * 0x1p-11f), 0x3C02);
  EXPECT_EQ(to_half(65504), 0x7BFF);
  EXPECT_EQ(to_half(65519), 0x7BFF);
  EXPECT_EQ(to_half(65520), 0x7C00);
  EXPECT_EQ(to_half(std::nanf("")), 0x7C00);
  EXPECT_EQ(to_half(0x1p-24f), 1);
  EXPECT_EQ(to_half(0x1p-25f), 0);
  EXPECT_EQ(to_half(3 * 0x1p-25f), 2);
  EXPECT_EQ(to_half(-0.0f), 0x8000);
  EXPECT_EQ(to_half(0x1.fffp-15f), 0x0400) << "rounds up to the smallest normal number";
  for (std::uint32_t bits = 0; bits < 0x7C00; ++bits)
    ASSERT_EQ(to_half(half_value(static_cast<std::uint16_t>(bits))), bits);
}

TEST(LearnedLayout, AMiddleLayerIsTheConvolutionForEachPlan) {
  const padded_grid grid{4, 5};
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(grid.value(kGroups, 0)), weights(kMiddleWeights), biases(kNetworkChannels);
  for (std::uint32_t cell = 0; cell < grid.cells(); ++cell)
    for (std::uint32_t k = 0; k < kNetworkChannels; ++k)
      values[grid.value(k / 16, grid.place(cell)) + k % 16] = rounded(uniform(random));
  std::vector<float> plain(kMiddleWeights); // [tap][input][output]
  for (std::uint32_t tap = 0; tap < kTaps; ++tap)
    for (std::uint32_t in = 0; in < kNetworkChannels; ++in)
      for (std::uint32_t out = 0; out < kNetworkChannels; ++out)
        weights[middle_weight(tap, in, out)] = plain[(tap * kNetworkChannels + in) * kNetworkChannels + out] =
            uniform(random) / 16;
  for (float &bias : biases)
    bias = uniform(random);
  std::vector<float> expected(values.size());
  for (std::uint32_t cell = 0; cell < grid.cells(); ++cell) {
    const std::uint32_t place = grid.place(cell);
    float sum[kNetworkChannels];
    std::ranges::copy(biases, sum);
    for (std::uint32_t tap = 0; tap < kTaps; ++tap)
      for (std::uint32_t in = 0; in < kNetworkChannels; ++in) {
        const float value =
            values[grid.value(in / 16, place + static_cast<std::uint32_t>(grid.distance(tap))) + in % 16];
        for (std::uint32_t out = 0; out < kNetworkChannels; ++out)
          sum[out] += value * plain[(tap * kNetworkChannels + in) * kNetworkChannels + out];
      }
    for (std::uint32_t out = 0; out < kNetworkChannels; ++out) {
      const std::size_t at = grid.value(out / 16, place) + out % 16;
      expected[at] = std::max(0.0f, sum[out] + values[at]);
    }
  }
  for (const auto &[tiles, parts] : {std::pair{1u, 8u}, {2u, 4u}, {3u, 2u}, {4u, 1u}})
    for (const product how : {product::of_warps, product::of_warp_groups}) {
      std::vector<float> found(values.size());
      emulated_layer(grid, plan_of(grid, tiles, parts), how, weights, biases.data()).run(values, found);
      for (std::size_t at = 0; at < found.size(); ++at) // 2^-11 of values up to some 8
        ASSERT_NEAR(found[at], expected[at], 0.005f) << tiles << " tiles, " << parts << " parts, at " << at;
    }
  std::vector<float> fused_weights(kMiddleWeights);
  for (std::uint32_t tap = 0; tap < kTaps; ++tap)
    for (std::uint32_t in = 0; in < kNetworkChannels; ++in)
      for (std::uint32_t out = 0; out < kNetworkChannels; ++out)
        fused_weights[fused_weight(tap, in, out)] = weights[middle_weight(tap, in, out)];
  for (const fused_plan &plan : {fused_plan_of(grid, 64, 1, 4), fused_plan_of(grid, 96, 2, 1)}) {
    std::vector<float> from(plan.value(grid, kNetworkChannels / kOctet, 0));
    const auto each = [&](const auto &take) {
      for (std::uint32_t cell = 0; cell < grid.cells(); ++cell)
        for (std::uint32_t k = 0; k < kNetworkChannels; ++k)
          take(plan.value(grid, k / kOctet, grid.place(cell)) + k % kOctet,
               grid.value(k / kGroupChannels, grid.place(cell)) + k % kGroupChannels,
               (grid.place(cell) - grid.place(0)) % plan.rows % kSomeOutputs == k % kSomeOutputs);
    };
    each([&](std::size_t to, std::size_t at, bool) { from[to] = values[at]; });
    const auto found = emulated_fused_layer(grid, plan, from, fused_weights, biases);
    each([&](std::size_t at, std::size_t of, bool computed) {
      ASSERT_NEAR(found[at], computed ? expected[of] : 0, 0.005f) << plan.rows;
    });
  }
}

/// All kernels of a shot, with packed weights. Returns the logits.
std::vector<float> emulated_logits(const learned_model &model, const std::vector<bool> &events,
                                   const layer_plan &plan) {
  const auto packed = pack_network(model.network);
  EXPECT_TRUE(packed.ok()) << packed.text();
  const padded_grid grid = padded(model.lattice.grid);
  const auto detectors = detectors_by_place(model.lattice);
  const auto constant = constant_part(model.network, model.lattice);
  std::vector<float> values[2] = {std::vector<float>(grid.value(kGroups, 0)), {}};
  values[1] = values[0];
  for (std::uint32_t cell = 0; cell < grid.cells(); ++cell)
    for (std::uint32_t out = 0; out < kNetworkChannels; ++out) {
      float sum = constant[std::size_t{cell} * kNetworkChannels + out];
      for (std::uint32_t tap = 0; tap < kTaps; ++tap)
        if (const std::uint32_t code = detectors[grid.place(cell) + static_cast<std::uint32_t>(grid.distance(tap))];
            code != kNoDetector32 && events[code / 2])
          sum += packed->first[first_weight(tap, code % 2, out)];
      values[0][grid.value(out / 16, grid.place(cell)) + out % 16] = rounded(sum);
    }
  const std::vector<float> middle = half_values(packed->middle), head = half_values(packed->head);
  for (std::uint32_t k = 0; k < packed->middles; ++k) {
    const std::vector<float> weights(middle.begin() + static_cast<std::ptrdiff_t>(k * kMiddleWeights),
                                     middle.begin() + static_cast<std::ptrdiff_t>((k + 1) * kMiddleWeights));
    emulated_layer(grid, plan, product::of_warp_groups, weights, packed->biases.data() + k * kNetworkChannels)
        .run(values[k % 2], values[(k + 1) % 2]);
  }
  const std::vector<float> &last = values[packed->middles % 2];
  std::vector<float> logits(std::size_t{grid.cells()} * 3);
  for (std::uint32_t first = 0; first < grid.cells(); first += 16) {
    sums_fragment sums{};
    for (std::uint32_t group = 0; group < kGroups; ++group)
      for (std::uint32_t tap = 0; tap < kTaps; ++tap) {
        a_fragment a{};
        b_fragment b{};
        for (std::uint32_t lane = 0; lane < 32; ++lane)
          for (std::uint32_t k = 0; k < 4; ++k) {
            for (const std::uint32_t row : {0u, 1u}) {
              const std::uint32_t cell = std::min(first + lane / 4 + 8 * row, grid.cells() - 1);
              const std::uint32_t near = grid.place(cell) + static_cast<std::uint32_t>(grid.distance(tap));
              a[lane][row + k / 2 * 2][k % 2] = last[grid.value(group, near) + lane % 4 * 4 + k];
            }
            b[lane][k / 2][k % 2] = head[((group * kTaps + tap) * 32 + lane) * 4 + k];
          }
        multiply(sums, a, b);
      }
    for (std::uint32_t lane = 0; lane < 32; ++lane)
      for (std::uint32_t r = 0; r < 4; ++r)
        if (const std::uint32_t cell = first + lane / 4 + r / 2 * 8, out = lane % 4 * 2 + r % 2;
            cell < grid.cells() && out < 3)
          logits[cell * 3 + out] = sums[lane][r] + packed->head_biases[out];
  }
  return logits;
}

std::vector<float> reference_logits(const learned_model &model, const std::vector<bool> &events) {
  const std::size_t cells = model.lattice.grid.cells();
  std::vector<float> input(cells * 4), output(cells * 3), memory(model.network.memory_floats(model.lattice.grid));
  for (std::size_t k = 0; k < events.size(); ++k) {
    input[model.lattice.places[k].cell * 4 + model.lattice.places[k].what] = events[k] ? 1 : 0;
    input[model.lattice.places[k].cell * 4 + 2 + model.lattice.places[k].what] = 1;
  }
  model.network.run(model.lattice.grid, input, output, memory);
  return output;
}

std::vector<bool> events_of_a_shot(const shot_set &set) {
  std::vector<bool> events(static_cast<std::size_t>(set.num_detectors)), none = events;
  for (std::uint64_t shot = 0; std::ranges::count(events, true) < 6; ++shot)
    for (std::size_t k = 0; k < events.size(); ++k)
      events[k] = (set.detection_row(shot)[k / 8] >> k % 8 & 1) != 0;
  return events;
}

class LearnedKernels : public testing::TestWithParam<const char *> {};

TEST_P(LearnedKernels, HaveTheLogitsOfTheNetworkOnTheCpu) {
  const bool is_tiny = GetParam() == std::string("Tiny");
  const shot_set set = load_committed(is_tiny ? "surface_z_d5_p0.003" : "surface_z_d3_p0.003");
  const decoder_model errors(set.dem_text);
  const auto model = read_learned_model(is_tiny ? kTiny : kWeights, errors);
  ASSERT_TRUE(model.ok()) << model.text();
  const auto events = events_of_a_shot(set);
  const auto expected = reference_logits(*model, events);
  const auto found = emulated_logits(*model, events, plan_of(padded(model->lattice.grid), 2, 4));
  float max_logit = 0;
  for (std::size_t at = 0; at < found.size(); ++at) {
    ASSERT_NEAR(found[at], expected[at], 0.02f + 0.005f * std::fabs(expected[at])) << at;
    max_logit = std::max(max_logit, std::fabs(expected[at]));
  }
  EXPECT_GT(max_logit, is_tiny ? 0.1f : 5.0f) << "the comparison says something";
}

INSTANTIATE_TEST_SUITE_P(Networks, LearnedKernels, testing::Values("Tiny", "Committed"),
                         [](const auto &tested) { return std::string(tested.param); });

/// Clusters that a GPU of 132 multiprocessors runs at a time, if `lost` of them are in incomplete parts.
std::uint32_t of_132(const layer_plan &plan) { return (132 - (plan.parts > 4 ? 12 : 0)) / plan.parts; }

TEST(LearnedPlan, CoversTheGridAndUsesMostMultiprocessorsForSmallGrids) {
  constexpr std::size_t kBlockBytes = 227 * 1024;
  struct {
    std::uint32_t layers, width, least_blocks;
  } cases[] = {{6, 6, 40}, {10, 10, 60}, {14, 14, 100}, {22, 22, 100}, {105, 14, 120}, {32, 32, 120}};
  for (const auto &c : cases) {
    const padded_grid grid{c.layers, c.width};
    const auto plan = plan_layers(grid, 132, kBlockBytes, of_132);
    ASSERT_TRUE(plan.ok()) << plan.text();
    EXPECT_GE(plan->clusters * plan->rows(), grid.span());
    EXPECT_LT((plan->clusters - 1) * plan->rows(), grid.span());
    EXPECT_GE(plan->clusters * plan->parts, c.least_blocks) << c.width;
    EXPECT_LE(plan->bytes(), kBlockBytes);
    EXPECT_EQ(plan->slab_rows, plan_of(grid, plan->tiles, plan->parts).slab_rows);
  }
}

/// Clusters of 8 are in 15 parts of the GPU.
std::uint32_t blocks_of_132(const fused_plan &plan) { return plan.beside() == 8 ? 120 : 132; }

TEST(LearnedPlan, OfTheFusedKernelCoversTheGridWithBlocksThatFindRoomAtATime) {
  constexpr std::size_t kBlockBytes = 226 * 1024;
  for (const padded_grid grid : {padded_grid{3, 4}, {6, 6}, {8, 8}, {10, 10}, {14, 14}, {22, 22}, {105, 14}})
    for (const std::uint32_t shots : {1u, 2u, 8u}) {
      const std::size_t words = (grid.cells() + 63) / 64;
      const fused_plan plan = plan_fused(grid, kBlockBytes, words, blocks_of_132, shots, true);
      if (plan.rows == 0) {
        EXPECT_GT(grid.span() * shots, 132u * 128) << "a smaller grid has a plan";
        continue;
      }
      EXPECT_GE(plan.row_blocks * plan.rows, grid.span());
      EXPECT_LE(plan.blocks() * shots, 132u);
      EXPECT_LE(plan.bytes(words), kBlockBytes);
      EXPECT_GE(plan.weight_slots, kLeastWeightSlots);
      EXPECT_EQ(plan.value_bytes() / 2 % 128, 64u) << "the two halves of a row are in different banks";
      for (std::uint32_t block = 0; block < plan.row_blocks; ++block) {
        const std::uint32_t first = plan.lowest(grid, block) - grid.plane() - grid.pitch() - 1;
        const std::uint32_t last = plan.lowest(grid, block) + plan.rows + grid.plane() + grid.pitch();
        EXPECT_LE(last, plan.places(grid) - 1);
        for (const std::uint32_t place :
             {std::max(first, grid.place(0)), std::min(last, grid.place(grid.cells() - 1))}) {
          const std::uint32_t near = (place - grid.place(0)) / plan.rows;
          EXPECT_TRUE(near >= plan.first_near(grid, block) && near <= plan.last_near(grid, block)) << block;
        }
      }
    }
  EXPECT_EQ(plan_fused({3, 1000}, kBlockBytes, 64, blocks_of_132).rows, 0u);
}

TEST(LearnedPlan, OfMoreShotsAtOnceHasFewerBlocksForEach) {
  for (const padded_grid grid : {padded_grid{8, 8}, {14, 14}}) {
    std::uint32_t blocks = UINT32_MAX;
    for (const std::uint32_t shots : {1u, 8u, 32u}) {
      const auto plan = plan_layers(grid, 132, 227 * 1024, of_132, shots);
      ASSERT_TRUE(plan.ok()) << plan.text();
      EXPECT_GE(plan->clusters * plan->rows(), grid.span());
      EXPECT_LE(plan->clusters * plan->parts, blocks) << shots;
      blocks = plan->clusters * plan->parts;
    }
    EXPECT_LE(blocks, 16u) << grid.width;
  }
}

TEST(LearnedPlan, RefusesRowsThatNoBlockCanHold) {
  const auto refused = plan_layers({3, 1000}, 132, 227 * 1024, of_132);
  ASSERT_TRUE(refused.failed());
  EXPECT_NE(refused.text().find("rows of 1000 cells"), std::string::npos) << refused.text();
  const auto small = plan_layers({6, 6}, 84, 99 * 1024, [](const layer_plan &) { return 1u; }); // no row fits
  ASSERT_TRUE(small.failed());
  EXPECT_NE(small.text().find("a block of this GPU can have 101376"), std::string::npos) << small.text();
  EXPECT_TRUE(plan_layers({6, 6}, 132, 227 * 1024, [](const layer_plan &) { return 0u; }).failed());
}

} // namespace
} // namespace cudaq::qec::realtime::test
