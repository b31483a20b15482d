// SPDX-License-Identifier: Apache-2.0
// A block of the fused kernel of the learned predecoder: its waits, its copies of weights and values, and its part of
// the first layer. For code of sm_90a.
#pragma once

#include "kernels/qec/learned/fused_parts.cuh"
#include "kernels/qec/learned/network_device.cuh"

namespace cudaq::qec::realtime::gpu {

inline constexpr std::uint64_t kLimitNs = 2'000'000'000;         ///< of waiting for other blocks
inline constexpr std::uint32_t kLayerBegins = 1, kLayerEnds = 2; ///< numbers of barriers of the block
inline constexpr std::uint32_t kCellsAtOnce = 8;                 ///< of a warp in the first layer

__device__ inline std::uint32_t load_flag(const std::uint32_t &word) {
  std::uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(&word) : "memory");
  return value;
}
__device__ inline void add_to_flag(std::uint32_t &word) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(&word) : "memory");
}
__device__ inline void set_flag(std::uint32_t &word, std::uint32_t value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(&word), "r"(value) : "memory");
}
__device__ inline std::uint64_t now_ns() {
  std::uint64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

/// Barriers of the block in its shared memory.
struct fused_barriers {
  std::uint64_t weights[kMaxWeightSlots], no_weights[kMaxWeightSlots]; ///< copied; not used any more
  std::uint64_t values[kValueSlots], no_values[kValueSlots];
  std::uint64_t sums[2]; ///< of the other parts, for each warp group
};

__device__ inline void make_barriers(fused_barriers &barriers, const fused_plan &plan) {
  for (std::uint32_t k = 0; k < plan.weight_slots; ++k) {
    make_barrier(shared_at(&barriers.weights[k]), 1);
    make_barrier(shared_at(&barriers.no_weights[k]), 4 * plan.halves);
  }
  for (std::uint32_t k = 0; k < kValueSlots; ++k) {
    make_barrier(shared_at(&barriers.values[k]), 1);
    make_barrier(shared_at(&barriers.no_values[k]), 4 * plan.halves);
  }
  for (std::uint64_t &sums : barriers.sums)
    make_barrier(shared_at(&sums), 1);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// What a block has in shared memory beside its rings of buffers.
struct fused_shared {
  fused_barriers barriers;
  std::uint32_t warp_sums[kMaxBlockThreads / 32];
  std::uint64_t end_ns; ///< of waits
  std::uint32_t events, failed;
};

/// Waits that end. After one has not found its end, none in the block waits any more; values are then wrong.
struct patience {
  fused_meeting &meeting;
  volatile std::uint32_t &failed; ///< in shared memory, as the next
  volatile std::uint64_t &end_ns;

  __device__ void limit() const { end_ns = now_ns() + kLimitNs; }
  [[nodiscard]] __device__ bool has_failed() const { return failed != 0; }
  __device__ void fail() const { failed = 1; }
  [[nodiscard]] __device__ bool is_over() const { return has_failed() || now_ns() > end_ns; }
  /// For the copies and the sums of the cluster.
  __device__ void wait_for(std::uint32_t barrier, std::uint32_t parity) const {
    while (!has_passed(barrier, parity))
      if (is_over()) {
        fail();
        return;
      }
  }
  /// For blocks of other clusters.
  template <class Ready>
  __device__ void wait(const Ready &is_ready) const {
    for (std::uint32_t poll = 1; !is_ready(); ++poll)
      if (poll % 64 == 0 && (load_flag(meeting.failed) != 0 || is_over())) {
        fail();
        return;
      }
  }
};

/// A block: its places, its outputs and its channels.
struct fused_block {
  const network_job &job;
  const network_shot &shot;
  const fused_plan &plan;
  fused_barriers &barriers;
  std::uint32_t memory; ///< address of the rings of buffers
  patience wait;
  std::uint32_t inside; ///< rank in its cluster
  std::uint32_t row_block, lowest;
  std::uint32_t layers_before = 0; ///< of earlier shots

  /// number: among the blocks of a shot.
  __device__ fused_block(const network_job &of, const network_shot &at, fused_shared &shared, std::uint32_t address,
                         std::uint32_t number)
      : job(of), shot(at), plan(of.fused), barriers(shared.barriers),
        memory(address), wait{*at.meeting, shared.failed, shared.end_ns}, inside(number % plan.beside()),
        row_block(number / plan.beside()), lowest(plan.lowest(of.grid, row_block)) {}
  __device__ std::uint32_t part() const { return inside % plan.parts; }
  __device__ std::uint32_t outputs() const { return plan.halves == 1 ? inside / plan.parts : 0; }
  /// The number of this block's stage k of a layer, in the order [group][slab]. All blocks begin with the same: the GPU
  /// joins their reads of the same weights.
  __device__ std::uint32_t stage(bool is_head, std::uint32_t k) const {
    return (is_head ? inside : part()) * stages(is_head) + k;
  }
  __device__ std::uint32_t stages(bool is_head) const { return is_head ? plan.head_stages() : plan.stages(); }
  __device__ std::uint32_t weights_in(std::uint32_t slot) const { return memory + slot * plan.weight_bytes(); }
  __device__ std::uint32_t values_in(std::uint32_t slot) const {
    return memory + plan.values_at() + slot * plan.value_bytes();
  }
  __device__ const std::uint16_t *input(std::uint32_t layer) const { return shot.values[layer % 2]; }
  /// Blocks near it have stored this layer's input.
  __device__ bool has_stored(std::uint32_t near, std::uint32_t layer) const {
    const std::uint32_t blocks = plan.beside() * (layers_before + layer + 1);
    return static_cast<std::int32_t>(load_flag(shot.meeting->done[near].blocks) - blocks) >= 0;
  }
};

/// Copies the weights of all layers, shot after shot, as long as there is room for them.
class weight_copies {
public:
  __device__ explicit weight_copies(const fused_block &block) : block_(block) {}
  /// Stages of a shot.
  [[nodiscard]] __device__ std::uint32_t all() const {
    return block_.job.middles * block_.plan.stages() + block_.plan.head_stages();
  }
  /// Those that there is room for before the first one is used.
  [[nodiscard]] __device__ std::uint32_t ahead() const { return min(block_.plan.weight_slots, all()); }
  /// The next stages.
  __device__ void copy(std::uint32_t stages) {
    for (; stages != 0 && !block_.wait.has_failed(); --stages)
      copy_next();
  }
  /// For all copies.
  __device__ void await() const {
    for (std::uint32_t k = 0; k < ahead(); ++k)
      block_.wait.wait_for(shared_at(&block_.barriers.weights[k]), at_.parity ^ (k < at_.slot ? 0 : 1));
  }

private:
  __device__ void copy_next() {
    const bool is_head = layer_ == block_.job.middles;
    const std::uint32_t stage = block_.stage(is_head, stage_);
    const std::uint32_t barrier = shared_at(&block_.barriers.weights[at_.slot]), to = block_.weights_in(at_.slot);
    block_.wait.wait_for(shared_at(&block_.barriers.no_weights[at_.slot]), at_.parity ^ 1);
    if (block_.wait.has_failed())
      return;
    if (is_head) {
      expect_bytes(barrier, kHeadStageBytes);
      copy_bulk(to, block_.job.head + stage * (kHeadStageBytes / 2), kHeadStageBytes, barrier);
    } else {
      expect_bytes(barrier, block_.plan.weight_bytes());
      const std::uint16_t *const from = block_.job.middle + layer_ * kMiddleWeights;
      for (std::uint32_t half = 0; half < block_.plan.halves; ++half)
        copy_bulk(to + half * kHalfStageBytes,
                  from + ((block_.outputs() + half) * kLayerStages + stage) * (kHalfStageBytes / 2), kHalfStageBytes,
                  barrier);
    }
    at_.advance(block_.plan.weight_slots);
    if (++stage_ == block_.stages(is_head)) {
      stage_ = 0;
      layer_ = is_head ? 0 : layer_ + 1;
    }
  }
  fused_block block_; // a copy: a reference would keep all of it in local memory
  std::uint32_t layer_ = 0, stage_ = 0;
  ring_place at_;
};

/// A warp: copies the values of each layer, when the blocks near this one have stored them.
/// threads: of the barrier at which layers begin.
__device__ inline void copy_values(const fused_block &block, ring_place &at, std::uint32_t threads) {
  const fused_plan &plan = block.plan;
  const padded_grid &grid = block.job.grid;
  const std::uint32_t lane = threadIdx.x % 32, rows = plan.copied_rows(grid);
  const std::uint32_t first = plan.first_near(grid, block.row_block), last = plan.last_near(grid, block.row_block);
  for (std::uint32_t layer = 0; layer <= block.job.middles; ++layer) {
    const bool is_head = layer == block.job.middles;
    for (std::uint32_t near = first + lane; near <= last; near += 32)
      block.wait.wait([&] { return block.has_stored(near, layer); });
    __syncwarp();
    order_stores_and_copies();
    if (!is_head)
      meet_without_waiting(kLayerBegins, threads);
    if (lane == 0)
      for (std::uint32_t k = 0; k < block.stages(is_head); ++k) {
        const std::uint32_t stage = block.stage(is_head, k), group = stage / kGroupStages;
        const std::uint32_t barrier = shared_at(&block.barriers.values[at.slot]);
        const std::uint32_t begin =
            block.lowest + stage % kGroupStages * grid.plane() - grid.plane() - grid.pitch() - 1;
        block.wait.wait_for(shared_at(&block.barriers.no_values[at.slot]), at.parity ^ 1);
        if (block.wait.has_failed())
          break;
        expect_bytes(barrier, 2 * rows * kHalfBytes);
        for (std::uint32_t half = 0; half < 2; ++half)
          copy_bulk(block.values_in(at.slot) + half * plan.slab_rows * kHalfBytes,
                    block.input(layer) + plan.value(grid, 2 * group + half, begin), rows * kHalfBytes, barrier);
        at.advance(kValueSlots);
      }
    __syncwarp();
  }
}

/// The first layer: this block's part of the cells of its places, eight at a time in a warp, four outputs a lane.
class first_layer {
public:
  /// Of so many warps. Others have none.
  __device__ first_layer(const fused_block &block, unsigned char *memory, std::uint32_t warps)
      : block_(block), memory_(memory), warps_(warps) {}
  /// What does not depend on the events: weights, and the constant part of the first eight. Called by all threads; the
  /// block meets before run(). The weights take the place of values, if these have so much.
  __device__ void prepare() {
    const std::uint32_t warp = threadIdx.x / 32;
    weights_ = reinterpret_cast<const float4 *>(block_.job.first);
    if (kValueSlots * block_.plan.value_bytes() >= kFirstWeights * sizeof(float)) {
      auto *const copied = reinterpret_cast<float4 *>(memory_ + block_.plan.values_at());
      for (std::uint32_t k = threadIdx.x; k < kFirstWeights / 4; k += blockDim.x)
        copied[k] = weights_[k];
      weights_ = copied;
    }
    next_ = warp < warps_ ? warp : block_.plan.rows;
    load();
  }
  /// words: the events, in shared memory.
  __device__ void run(const std::uint64_t *words) {
    const std::uint32_t lane = threadIdx.x % 32;
    for (;;) {
#pragma unroll
      for (std::uint32_t k = 0; k < kCellsAtOnce; ++k) {
        if (places_[k] == 0)
          continue;
        add_events(weights_, codes_[k], has_fired(words, codes_[k]), sums_[k]);
        *reinterpret_cast<four_halves *>(block_.shot.values[0] +
                                         block_.plan.value(block_.job.grid, lane / 2, places_[k]) + lane % 2 * 4) =
            cut(sums_[k]);
      }
      if (next_ * block_.plan.beside() >= block_.plan.rows)
        return;
      load();
    }
  }

private:
  __device__ void load() {
    const std::uint32_t lane = threadIdx.x % 32, beside = block_.plan.beside();
    const auto near = static_cast<std::uint32_t>(block_.job.grid.distance(lane < kTaps ? lane : 0));
#pragma unroll
    for (std::uint32_t k = 0; k < kCellsAtOnce; ++k) {
      const std::uint32_t row = next_ * beside + block_.inside, place = block_.lowest + row;
      next_ += warps_;
      const std::uint32_t cell = row < block_.plan.rows ? block_.job.cell_at[place] : kNoCell;
      places_[k] = cell != kNoCell ? place : 0;
      codes_[k] = cell != kNoCell && lane < kTaps ? block_.job.detector_at[place + near] : kNoDetector32;
      sums_[k] =
          reinterpret_cast<const float4 *>(block_.job.constant)[std::size_t{cell != kNoCell ? cell : 0} * 32 + lane];
    }
  }
  fused_block block_; // a copy: a reference would keep all of it in local memory
  unsigned char *memory_;
  const float4 *weights_ = nullptr;
  std::uint32_t warps_, next_ = 0;
  std::uint32_t places_[kCellsAtOnce], codes_[kCellsAtOnce];
  float4 sums_[kCellsAtOnce];
};

} // namespace cudaq::qec::realtime::gpu
