// SPDX-License-Identifier: Apache-2.0
#include "kernels/qec/learned/network_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

namespace cudaq::qec::realtime::gpu {
namespace {

constexpr float kMaxHalf = 65504;

} // namespace

std::uint16_t to_half(float value) noexcept {
  const auto sign = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16 & 0x8000);
  const float size = std::fabs(value);
  const auto with_sign = [&](std::uint32_t bits) { return static_cast<std::uint16_t>(sign | bits); };
  if (!(size < kMaxHalf + 16)) // half a step above the largest
    return with_sign(0x7C00);
  if (size < 0x1p-14f) // a multiple of 2^-24; nearbyint rounds ties to even
    return with_sign(static_cast<std::uint32_t>(std::nearbyint(std::ldexp(size, 24))));
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(size) - (112u << 23); // the exponent of a float16
  return with_sign((bits + 0xFFF + (bits >> 13 & 1)) >> 13);
}

expected<packed_network> pack_network(const predecoder_network &network) {
  const auto layers = network.layers();
  if (network.channels() > kNetworkChannels)
    return reason("it has " + std::to_string(network.channels()) + " channels; the kernels have at most " +
                  std::to_string(kNetworkChannels) + ", so it runs on the CPU only");
  packed_network packed;
  packed.middles = static_cast<std::uint32_t>(layers.size()) - 2;
  packed.first.resize(kFirstWeights);
  packed.middle.resize(kMiddleWeights * packed.middles);
  packed.biases.resize(std::size_t{kNetworkChannels} * packed.middles);
  packed.head.resize(kHeadWeights);
  packed.fused_middle.resize(packed.middle.size());
  packed.fused_head.resize(packed.head.size());
  bool fits = true;
  const auto each_weight = [](const predecoder_network::convolution &layer, std::uint32_t inputs, const auto &take) {
    for (std::uint32_t tap = 0; tap < kTaps; ++tap)
      for (std::uint32_t in = 0; in < inputs; ++in)
        for (std::uint32_t out = 0; out < layer.outputs; ++out)
          take(tap, in, out, layer.weights[(std::size_t{tap} * layer.inputs + in) * layer.outputs + out]);
  };
  const auto half = [&](float value) {
    fits = fits && std::fabs(value) <= kMaxHalf;
    return to_half(value);
  };
  each_weight(layers.front(), 2,
              [&](auto tap, auto in, auto out, float w) { packed.first[first_weight(tap, in, out)] = w; });
  for (std::uint32_t k = 0; k < packed.middles; ++k) {
    each_weight(layers[k + 1], layers[k + 1].inputs, [&](auto tap, auto in, auto out, float w) {
      packed.middle[k * kMiddleWeights + middle_weight(tap, in, out)] =
          packed.fused_middle[k * kMiddleWeights + fused_weight(tap, in, out)] = half(w);
    });
    std::ranges::copy(layers[k + 1].biases, packed.biases.begin() + std::ptrdiff_t{k} * kNetworkChannels);
  }
  each_weight(layers.back(), layers.back().inputs, [&](auto tap, auto in, auto out, float w) {
    packed.head[head_weight(tap, in, out)] = packed.fused_head[fused_head_weight(tap, in, out)] = half(w);
  });
  std::ranges::copy(layers.back().biases, packed.head_biases);
  if (!fits)
    return reason("it has weights above 65504, which the kernels cannot hold, so it runs on the CPU only");
  return packed;
}

std::vector<std::uint32_t> detectors_by_place(const memory_lattice &lattice) {
  const padded_grid grid = padded(lattice.grid);
  std::vector<std::uint32_t> at(grid.places(), kNoDetector32);
  for (std::uint32_t k = 0; k < lattice.places.size(); ++k)
    at[grid.place(lattice.places[k].cell)] = 2 * k + lattice.places[k].what;
  return at;
}

std::vector<std::uint32_t> cells_by_place(const padded_grid &grid, std::uint32_t places) {
  std::vector<std::uint32_t> at(places, kNoCell);
  for (std::uint32_t cell = 0; cell < grid.cells(); ++cell)
    at[grid.place(cell)] = cell;
  return at;
}

std::vector<float> constant_part(const predecoder_network &network, const memory_lattice &lattice) {
  const padded_grid grid = padded(lattice.grid);
  const auto detectors = detectors_by_place(lattice);
  const predecoder_network::convolution &layer = network.layers().front();
  std::vector<float> sums(std::size_t{grid.cells()} * kNetworkChannels);
  for (std::uint32_t cell = 0; cell < grid.cells(); ++cell) {
    float *const sum = sums.data() + std::size_t{cell} * kNetworkChannels;
    std::ranges::copy(layer.biases, sum);
    for (std::uint32_t tap = 0; tap < kTaps; ++tap) {
      const std::uint32_t code = detectors[grid.place(cell) + static_cast<std::uint32_t>(grid.distance(tap))];
      if (code == kNoDetector32)
        continue;
      const float *const weights =
          layer.weights.data() + (std::size_t{tap} * layer.inputs + 2 + code % 2) * layer.outputs;
      for (std::uint32_t out = 0; out < layer.outputs; ++out)
        sum[out] += weights[out];
    }
  }
  return sums;
}

expected<layer_plan> plan_layers(padded_grid grid, std::uint32_t processors, std::size_t block_bytes,
                                 const clusters_at_once &at_once, std::uint32_t shots_at_once) {
  layer_plan best;
  std::size_t least_bytes = SIZE_MAX;
  std::uint64_t best_time = std::numeric_limits<std::uint64_t>::max();
  for (std::uint32_t tiles = 1; tiles <= kMaxTiles; ++tiles) {
    layer_plan plan;
    plan.tiles = tiles;
    plan.cover(grid);
    for (plan.parts = 1; plan.parts <= kGroups; plan.parts *= 2) {
      least_bytes = std::min(least_bytes, plan.bytes());
      if (plan.bytes() > block_bytes)
        continue;
      // Two blocks on a multiprocessor take as long as one after the other.
      const std::uint32_t together = std::min(at_once(plan), processors / plan.parts);
      if (together == 0)
        continue;
      // In halves of the 64 cycles of a tile's product: those of the tiles, one more for the weights, and the begin
      // and the end of a block.
      constexpr std::uint64_t kEnds = 200, kClusterEnds = 80;
      const std::uint64_t of_block =
          std::uint64_t{kTaps} * kGroups / plan.parts * (2 * tiles + 1) + kEnds + (plan.parts > 1 ? kClusterEnds : 0);
      const std::uint64_t clusters = std::uint64_t{plan.clusters} * shots_at_once;
      // Blocks of one shot start in rounds; those of other shots fill the gaps between them.
      const std::uint64_t time = shots_at_once == 1 ? (clusters + together - 1) / together * of_block
                                                    : std::max(of_block, of_block * clusters / together);
      if (time < best_time) {
        best = plan;
        best_time = time;
      }
    }
  }
  if (best_time == std::numeric_limits<std::uint64_t>::max())
    return reason("its grid has rows of " + std::to_string(grid.width) + " cells, for which a block needs " +
                  std::to_string(least_bytes) + " bytes of shared memory; a block of this GPU can have " +
                  std::to_string(block_bytes));
  return best;
}

fused_plan plan_fused(padded_grid grid, std::size_t block_bytes, std::size_t words, const blocks_at_once &at_once,
                      std::uint32_t shots_at_once, bool stay) {
  fused_plan best;
  std::uint64_t best_cycles = std::numeric_limits<std::uint64_t>::max();
  for (const fused_form &form : kFusedForms) {
    fused_plan plan{.rows = form.rows, .halves = form.halves, .parts = form.parts};
    plan.cover(grid, block_bytes, words);
    if (plan.weight_slots < kLeastWeightSlots)
      continue;
    const std::uint64_t room = at_once(plan), all = std::uint64_t{plan.blocks()} * shots_at_once;
    if (room < (stay ? all : plan.blocks()))
      continue;
    // A product of 64 x 16 times 16 x rows takes rows / 2 cycles; weights come at some 2000 bytes a cycle to all
    // multiprocessors; the ends of a layer take kEnds.
    constexpr std::uint64_t kEnds = 9000, kSumsOfParts = 3000, kBytesPerCycle = 2000;
    const std::uint64_t products = std::uint64_t{kTaps} * kGroups / plan.parts * plan.halves * plan.rows / 2;
    const std::uint64_t weights =
        std::uint64_t{plan.stages()} * plan.weight_bytes() * std::min(room, all) / kBytesPerCycle;
    const std::uint64_t of_block = std::max(products, weights) + kEnds + (plan.parts > 1 ? kSumsOfParts : 0);
    const std::uint64_t cycles = std::max(of_block, of_block * all / room);
    if (cycles < best_cycles) {
      best = plan;
      best_cycles = cycles;
    }
  }
  return best;
}

} // namespace cudaq::qec::realtime::gpu
