// SPDX-License-Identifier: Apache-2.0
// The middle layers and the last one in the fused kernel of the learned predecoder. For code of sm_90a.
#pragma once

#include "kernels/qec/learned/fused_block.cuh"

namespace cudaq::qec::realtime::gpu {

/// A warp group: the products of its 64 outputs and all places, layer after layer.
template <std::uint32_t Rows, std::uint32_t Halves, std::uint32_t Parts>
class fused_layers {
public:
  static constexpr std::uint32_t kColumns = Rows / kBlockColumns, kOwnColumns = kColumns / Parts;
  static_assert(kColumns % Parts == 0);

  __device__ explicit fused_layers(const fused_block &block)
      : block_(block), group_(threadIdx.x / 128), warp_(threadIdx.x % 128 / 32), lane_(threadIdx.x % 32) {}
  __device__ void run(std::uint32_t layer) {
    float sums[Rows / 2];
    begin(layer, sums);
    multiply(sums);
    if constexpr (Parts > 1) {
      send_sums(sums);
      block_.wait.wait_for(shared_at(&block_.barriers.sums[group_]), sums_parity_);
      sums_parity_ ^= 1;
    }
    store(layer, sums);
  }
  /// This block's channels of the last layer: the sums of three outputs are left in its shared memory. The warp groups
  /// take turns. All eight groups of rows of a product are the same eight outputs.
  __device__ void run_head() {
    float sums[Rows / 2] = {};
    const std::uint32_t stages = block_.plan.head_stages();
    for (std::uint32_t k = 0; k < stages; ++k) {
      await_stage();
      if (k % Halves == group_) {
        const std::uint64_t a = same_matrix_at(block_.weights_in(weights_at_.slot), kHeadOutputs * kHalfBytes),
                            b = values();
        keep(sums);
        begin_products();
#pragma unroll
        for (std::uint32_t tap = 0; tap < kStageTaps; ++tap)
          product<Rows>::begin(sums, a + tap * (kHeadStageBytes / kStageTaps / kUnit),
                               b + row_of_tap(block_.job.grid, 0, tap));
        end_products();
        await_products<0>();
        keep(sums);
      }
      next_stage();
      free_stage();
    }
    const std::uint32_t output = lane_ / 4, to = head_sum(block_, group_, output, lane_ % 4 * 2);
    if (warp_ == 0 && output < 3)
#pragma unroll
      for (std::uint32_t column = 0; column < kColumns; ++column)
        store_shared(to + column * kBlockColumns * 4, sums[4 * column], sums[4 * column + 1]);
  }
  static __device__ std::uint32_t head_sum(const fused_block &block, std::uint32_t group, std::uint32_t output,
                                           std::uint32_t row) {
    return block.memory + block.plan.head_sums_at() + ((group * 3 + output) * Rows + row) * 4;
  }
  /// Which of this thread's places are cells.
  __device__ void find_cells() {
    const std::uint32_t *const cell_at = block_.job.cell_at + block_.lowest + lane_ / 4;
#pragma unroll 8
    for (std::uint32_t k = 0; k < kColumns; ++k)
      cells_ |= cell_at[k * kBlockColumns] != kNoCell ? 1u << k : 0;
  }

private:
  /// Outputs: a warp has 16, of which a thread has one of each octet.
  __device__ std::uint32_t first_octet() const {
    return ((block_.outputs() + group_) * kHalfOutputs + 16 * warp_) / kOctet;
  }
  /// Where a thread has a pair of channels of the first column that the part stores, before and after it is transposed.
  __device__ std::size_t first_pair() const {
    return block_.plan.value(block_.job.grid, first_octet(),
                             block_.lowest + kBlockColumns * block_.part() + lane_ / 4) +
           lane_ % 4 * 2;
  }
  __device__ std::size_t pair_after(std::uint32_t own, std::uint32_t octet) const {
    return block_.plan.value(block_.job.grid, octet, own * Parts * kBlockColumns);
  }
  /// Sums begin with bias and input, in the part that stores them.
  __device__ void begin(std::uint32_t layer, float (&sums)[Rows / 2]) {
    const float *const biases = block_.job.biases + layer * kNetworkChannels + first_octet() * kOctet + lane_ / 4;
    const float bias[2] = {biases[0], biases[8]};
    meet(kLayerBegins, Halves * 128 + 32);
    // After a wait without an end the sums of the layer before may still be expected.
    if (Parts > 1 && threadIdx.x % 128 == 0 && !block_.wait.has_failed())
      expect_bytes(shared_at(&block_.barriers.sums[group_]), (Parts - 1) * kOwnColumns * kColumnsBytes);
    const std::uint16_t *const input = block_.input(layer) + first_pair();
    std::uint32_t pairs[kOwnColumns][2];
#pragma unroll
    for (std::uint32_t own = 0; own < kOwnColumns; ++own)
#pragma unroll
      for (std::uint32_t octet = 0; octet < 2; ++octet)
        pairs[own][octet] = __ldcg(reinterpret_cast<const std::uint32_t *>(input + pair_after(own, octet)));
#pragma unroll
    for (std::uint32_t own = 0; own < kOwnColumns; ++own)
#pragma unroll
      for (std::uint32_t octet = 0; octet < 2; ++octet) {
        const std::uint32_t pair = transposed(pairs[own][octet]);
        const float2 both = __half22float2(*reinterpret_cast<const __half2 *>(&pair));
#pragma unroll
        for (std::uint32_t part = 0; part < Parts; ++part) {
          const bool is_own = Parts == 1 || part == block_.part();
          sums[4 * (own * Parts + part) + 2 * octet] = is_own ? both.x + bias[octet] : 0;
          sums[4 * (own * Parts + part) + 2 * octet + 1] = is_own ? both.y + bias[octet] : 0;
        }
      }
  }
  __device__ void await_stage() const {
    block_.wait.wait_for(shared_at(&block_.barriers.weights[weights_at_.slot]), weights_at_.parity);
    block_.wait.wait_for(shared_at(&block_.barriers.values[values_at_.slot]), values_at_.parity);
  }
  __device__ std::uint64_t values() const {
    return matrix_at(block_.values_in(values_at_.slot), block_.plan.slab_rows * kHalfBytes);
  }
  __device__ void next_stage() {
    values_at_.advance(kValueSlots);
    weights_at_.advance(block_.plan.weight_slots);
  }
  /// The oldest stage that is in use: its buffers may be written again.
  __device__ void free_stage() {
    if (lane_ == 0) {
      arrive(shared_at(&block_.barriers.no_values[freed_values_]));
      arrive(shared_at(&block_.barriers.no_weights[freed_weights_]));
    }
    freed_values_ = freed_values_ + 1 == kValueSlots ? 0 : freed_values_ + 1;
    freed_weights_ = freed_weights_ + 1 == block_.plan.weight_slots ? 0 : freed_weights_ + 1;
  }
  __device__ void multiply(float (&sums)[Rows / 2]) {
    constexpr std::uint32_t kStages = kLayerStages / Parts;
    keep(sums);
#pragma unroll 1
    for (std::uint32_t k = 0; k < kStages; ++k) {
      await_stage();
      const std::uint64_t a =
          matrix_at(block_.weights_in(weights_at_.slot) + group_ * kHalfStageBytes, kHalfOutputs * kHalfBytes);
      const std::uint64_t b = values();
      begin_products();
#pragma unroll
      for (std::uint32_t tap = 0; tap < kStageTaps; ++tap)
        product<Rows>::begin(sums, a + tap * (2 * kHalfOutputs * kHalfBytes / kUnit),
                             b + row_of_tap(block_.job.grid, 0, tap));
      end_products();
      next_stage();
      await_products<1>(); // the stage before this one
      if (k > 0)
        free_stage();
    }
    await_products<0>();
    keep(sums);
    free_stage();
  }
  /// Of all columns but the own ones, to the blocks that store them.
  __device__ void send_sums(const float (&sums)[Rows / 2]) const {
    const std::uint32_t part = block_.part();
    const std::uint32_t barrier = shared_at(&block_.barriers.sums[group_]);
#pragma unroll
    for (std::uint32_t other = 0; other < Parts; ++other) {
      if (other == part)
        continue;
      const std::uint32_t rank = block_.inside - part + other;
      const std::uint32_t first = of_rank(sums_from(part < other ? part : part - 1, 0), rank);
      const std::uint32_t their_barrier = of_rank(barrier, rank);
#pragma unroll
      for (std::uint32_t own = 0; own < kOwnColumns; ++own)
        send(first + own * Halves * kColumnsBytes, sums + 4 * (own * Parts + other), their_barrier);
    }
  }
  __device__ std::uint32_t sums_from(std::uint32_t other, std::uint32_t own) const {
    return block_.memory + block_.plan.sums_at() + ((other * kOwnColumns + own) * Halves + group_) * kColumnsBytes +
           threadIdx.x % 128 * 16;
  }
  __device__ void store(std::uint32_t layer, const float (&sums)[Rows / 2]) const {
    float own_sums[kOwnColumns][4];
#pragma unroll
    for (std::uint32_t own = 0; own < kOwnColumns; ++own) {
#pragma unroll
      for (std::uint32_t k = 0; k < 4; ++k) {
        own_sums[own][k] = sums[4 * own * Parts + k];
#pragma unroll
        for (std::uint32_t part = 1; part < Parts; ++part)
          own_sums[own][k] = either(part == block_.part(), sums[4 * (own * Parts + part) + k], own_sums[own][k]);
      }
#pragma unroll
      for (std::uint32_t other = 0; other + 1 < Parts; ++other) {
        const float4 more = load_shared(sums_from(other, own));
        own_sums[own][0] += more.x;
        own_sums[own][1] += more.y;
        own_sums[own][2] += more.z;
        own_sums[own][3] += more.w;
      }
    }
    std::uint16_t *const output = block_.shot.values[(layer + 1) % 2] + first_pair();
#pragma unroll
    for (std::uint32_t own = 0; own < kOwnColumns; ++own)
#pragma unroll
      for (std::uint32_t octet = 0; octet < 2; ++octet) {
        const __half2 both = cut(own_sums[own][2 * octet], own_sums[own][2 * octet + 1]);
        store_if((cells_ >> (own * Parts + (Parts > 1 ? block_.part() : 0)) & 1) != 0, output + pair_after(own, octet),
                 transposed(*reinterpret_cast<const std::uint32_t *>(&both)));
      }
  }

  fused_block block_;                             // a copy, as above
  std::uint32_t group_, warp_, lane_, cells_ = 0; ///< bit k: this thread's place of column block k has a cell
  ring_place weights_at_, values_at_;
  std::uint32_t freed_weights_ = 0, freed_values_ = 0, sums_parity_ = 0;
};

} // namespace cudaq::qec::realtime::gpu
