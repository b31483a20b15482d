// SPDX-License-Identifier: Apache-2.0
#include "kernels/qec/learned/network_device.cuh"

#include "cudaq/qec/realtime/resident_kernel.cuh"

namespace cudaq::qec::realtime::gpu {
namespace {

constexpr std::uint32_t kOneBlockThreads = 512;

/// Returns when the kernels before this one have ended; it then sees their stores. From then on the next kernel may
/// start, and wait here: not earlier, so at most two of them run at a time. Nothing without `overlap`.
__device__ void await_kernel_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Called by a whole block.
__global__ void __launch_bounds__(kOneBlockThreads)
    read_kernel(const __grid_constant__ network_job job, const __grid_constant__ network_shot shot) {
  __shared__ std::uint32_t warp_sums[kMaxBlockThreads / 32];
  __shared__ std::uint32_t events;
  await_kernel_before();
  const std::uint8_t *const frame = shot.from.io != nullptr ? request_frame(shot.from) : nullptr;
  read_request(block_group(warp_sums), job, shot, frame, decode_status::ok, events);
}

/// Four channels of a place in values of a layer.
template <class Values>
__device__ auto *channels_at(const padded_grid &grid, Values *values, std::uint32_t place, std::uint32_t channel) {
  return values + grid.value(channel / kGroupChannels, place) + channel % kGroupChannels;
}

/// A warp for each cell, four outputs a lane.
__global__ void __launch_bounds__(kBlockThreads)
    first_kernel(const __grid_constant__ network_job job, const __grid_constant__ network_shot shot) {
  const std::uint32_t lane = threadIdx.x % 32, cell = blockIdx.x * kBlockWarps + threadIdx.x / 32;
  const bool is_cell = cell < job.grid.cells();
  const std::uint32_t place = is_cell ? job.grid.place(cell) : 0;
  const std::uint32_t near = place + static_cast<std::uint32_t>(job.grid.distance(lane < kTaps ? lane : 0));
  const std::uint32_t code = is_cell && lane < kTaps ? job.detector_at[near] : kNoDetector32;
  const auto *const constant = reinterpret_cast<const float4 *>(job.constant);
  float4 sum = is_cell ? constant[std::size_t{cell} * 32 + lane] : float4{};
  await_kernel_before();
  if (shot.state->active == 0 || !is_cell)
    return;
  add_events(reinterpret_cast<const float4 *>(job.first), code, has_fired(shot.state->fired(), code), sum);
  *reinterpret_cast<four_halves *>(channels_at(job.grid, shot.values[0], place, 4 * lane)) = cut(sum);
}

#if __CUDA_ARCH__ >= 900
__device__ std::uint32_t shared_address(const void *pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}
__device__ void copy_unit(std::uint32_t to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ void end_copies_of_stage() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Of the stages that are being copied, `Left` may still be.
template <std::uint32_t Left>
__device__ void await_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
}
struct tile_registers {
  std::uint32_t r[4];
};
/// sums += a (16 rows x 16 channels) * b (16 channels x 8 outputs)
__device__ void multiply(float (&sums)[4], const tile_registers &a, std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b0), "r"(b1));
}
__device__ std::uint32_t rank_in_cluster() {
  std::uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
/// The same shared memory of another block of the cluster.
__device__ const float4 *of_block(const float4 *mine, std::uint32_t rank) {
  const float4 *other;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(other) : "l"(mine), "r"(rank));
  return other;
}
__device__ void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/// What a block of a middle layer copies to its shared memory. Groups and stages are counted from the block's first.
/// Blocks begin with different groups and slabs, so that they do not all read the same weights at the same time.
struct layer_copies {
  const network_job &job;
  const block_places &block;
  const std::uint16_t *values, *weights; ///< of the layer
  std::uint32_t groups, first_group, turn;
  std::uint32_t memory; ///< address of the shared memory

  __device__ layer_copies(const network_job &of, const block_places &places, const std::uint16_t *input,
                          const std::uint16_t *of_layer, std::uint32_t rank, std::uint32_t address)
      : job(of), block(places), values(input), weights(of_layer), groups(kGroups / of.plan.parts),
        first_group(rank * groups), turn(blockIdx.x / of.plan.parts), memory(address) {}
  __device__ std::uint32_t group_of(std::uint32_t group) const { return first_group + (group + turn) % groups; }
  __device__ std::uint32_t slab_of(std::uint32_t stage) const { return (stage + turn) % kGroupStages; }
  __device__ std::uint32_t values_at(std::uint32_t group) const {
    return memory + group % job.plan.value_buffers() * job.plan.group_bytes();
  }
  __device__ std::uint32_t stage_at(std::uint32_t stage) const {
    return memory + job.plan.value_buffers() * job.plan.group_bytes() + stage % kStageBuffers * kStageBytes;
  }
  __device__ void copy_weights(std::uint32_t stage) const {
    const std::uint32_t number = group_of(stage / kGroupStages) * kGroupStages + slab_of(stage);
    const std::uint16_t *const from = weights + std::size_t{number} * (kStageBytes / sizeof(std::uint16_t));
    const std::uint32_t to = stage_at(stage);
#pragma unroll
    for (std::uint32_t unit = threadIdx.x; unit < kStageBytes / kUnit; unit += kBlockThreads)
      copy_unit(to + unit * kUnit, from + unit * (kUnit / sizeof(std::uint16_t)));
  }
  __device__ void copy_values(std::uint32_t group) const {
    const std::uint32_t rows = block.slab_places(job.grid), to = values_at(group);
    for (std::uint32_t slab = 0; slab < 3; ++slab) {
      const std::uint16_t *const from = values + job.grid.value(group_of(group), block.slab_begin(job.grid, slab));
      for (std::uint32_t unit = threadIdx.x; unit < 2 * rows; unit += kBlockThreads)
        copy_unit(to + unit % 2 * job.plan.half_bytes() + (slab * job.plan.slab_rows + unit / 2) * kHalfBytes,
                  from + unit * (kUnit / sizeof(std::uint16_t)));
    }
  }
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
/// sums += a (64 rows x 16 channels) * b (16 channels x 64 outputs), later: until await_products() nothing else may
/// touch the sums.
__device__ void begin_product(float (&s)[32], std::uint64_t a, std::uint64_t b) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %34, 0; "
               "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
               "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
               "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
               "%32, %33, p, 1, 1, 0, 0; }"
               : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]), "+f"(s[4]), "+f"(s[5]), "+f"(s[6]), "+f"(s[7]),
                 "+f"(s[8]), "+f"(s[9]), "+f"(s[10]), "+f"(s[11]), "+f"(s[12]), "+f"(s[13]), "+f"(s[14]), "+f"(s[15]),
                 "+f"(s[16]), "+f"(s[17]), "+f"(s[18]), "+f"(s[19]), "+f"(s[20]), "+f"(s[21]), "+f"(s[22]), "+f"(s[23]),
                 "+f"(s[24]), "+f"(s[25]), "+f"(s[26]), "+f"(s[27]), "+f"(s[28]), "+f"(s[29]), "+f"(s[30]), "+f"(s[31])
               : "l"(a), "l"(b), "r"(1));
}
/// Copies that this thread has made and awaited are seen by products of its warp group, after a barrier.
__device__ void show_copies_to_products() { asm volatile("fence.proxy.async;" ::: "memory"); }

/// The sums of a block: each of the two warp groups has 64 outputs of all rows.
template <std::uint32_t Tiles>
struct block_sums {
  float sums[Tiles][32] = {};

  /// The products of one stage.
  __device__ void multiply_stage(const network_job &job, std::uint32_t values, std::uint32_t weights,
                                 std::uint32_t slab) {
    const std::uint64_t a = matrix_at(values, job.plan.half_bytes()) + slab * job.plan.slab_rows;
    const std::uint64_t b = matrix_at(weights, kTapBytes / 2) + threadIdx.x / 128 * 64;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (std::uint32_t tap = 0; tap < kStageTaps; ++tap)
#pragma unroll
      for (std::uint32_t m = 0; m < Tiles; ++m)
        begin_product(sums[m], a + row_of_tap(job.grid, 0, tap) + kTileRows * m, b + tap * (kTapBytes / kUnit));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (std::uint32_t m = 0; m < Tiles; ++m)
#pragma unroll
      for (float &sum : sums[m])
        asm volatile("" : "+f"(sum)::"memory"); // it is read after the wait only
  }
  __device__ void store(float *to) const {
    const std::uint32_t lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane / 4;
    to += row * kSumStride + threadIdx.x / 128 * 64 + lane % 4 * 2;
#pragma unroll
    for (std::uint32_t m = 0; m < Tiles; ++m)
#pragma unroll
      for (std::uint32_t n = 0; n < 8; ++n)
#pragma unroll
        for (std::uint32_t low = 0; low < 2; ++low)
          *reinterpret_cast<float2 *>(to + (kTileRows * m + 8 * low) * kSumStride +
                                      8 * n) = {sums[m][4 * n + 2 * low], sums[m][4 * n + 2 * low + 1]};
  }
};
#else
__device__ tile_registers load_tile(std::uint32_t address) {
  tile_registers t;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(t.r[0]), "=r"(t.r[1]), "=r"(t.r[2]), "=r"(t.r[3])
               : "r"(address)
               : "memory");
  return t;
}
__device__ void show_copies_to_products() {}

/// The sums of a block: each warp has 32 outputs of half of the rows, in tiles of 16.
template <std::uint32_t Tiles>
struct block_sums {
  static constexpr std::uint32_t kWarpTiles = 2 * Tiles;
  float sums[kWarpTiles][4][4] = {};

  static __device__ std::uint32_t first_row() { return threadIdx.x / 32 / kWarpsAcross * 16 * kWarpTiles; }
  static __device__ std::uint32_t first_output() { return threadIdx.x / 32 % kWarpsAcross * 32; }
  /// The products of one stage. Each tile is loaded while the products of the tile before it run.
  __device__ void multiply_stage(const network_job &job, std::uint32_t values, std::uint32_t weights,
                                 std::uint32_t slab) {
    const std::uint32_t lane = threadIdx.x % 32;
    values += lane_row_half(lane) * job.plan.half_bytes() +
              (first_row() + lane_row(lane) + slab * job.plan.slab_rows) * kHalfBytes;
    weights += lane_output_half(lane) * (kTapBytes / 2) + (first_output() + lane_output(lane)) * kHalfBytes;
    const auto rows = [&](std::uint32_t tap, std::uint32_t m) {
      return load_tile(values + (row_of_tap(job.grid, 0, tap) + 16 * m) * kHalfBytes);
    };
    const auto outputs = [&](std::uint32_t tap, std::uint32_t n) {
      return load_tile(weights + tap * kTapBytes + 16 * n * kHalfBytes);
    };
    tile_registers a = rows(0, 0), b[2] = {outputs(0, 0), outputs(0, 1)};
#pragma unroll
    for (std::uint32_t tap = 0; tap < kStageTaps; ++tap) {
      tile_registers next_b[2] = {b[0], b[1]};
#pragma unroll
      for (std::uint32_t m = 0; m < kWarpTiles; ++m) {
        tile_registers next_a = a;
        if (m + 1 < kWarpTiles)
          next_a = rows(tap, m + 1);
        else if (tap + 1 < kStageTaps)
          next_a = rows(tap + 1, 0);
        if (m == 0 && tap + 1 < kStageTaps)
          for (std::uint32_t n = 0; n < 2; ++n)
            next_b[n] = outputs(tap + 1, n);
#pragma unroll
        for (std::uint32_t n = 0; n < 4; ++n)
          multiply(sums[m][n], a, b[n / 2].r[n % 2 * 2], b[n / 2].r[n % 2 * 2 + 1]);
        a = next_a;
      }
      b[0] = next_b[0];
      b[1] = next_b[1];
    }
  }
  __device__ void store(float *to) const {
    const std::uint32_t lane = threadIdx.x % 32;
    to += (first_row() + lane / 4) * kSumStride + first_output() + lane % 4 * 2;
#pragma unroll
    for (std::uint32_t m = 0; m < kWarpTiles; ++m)
#pragma unroll
      for (std::uint32_t n = 0; n < 4; ++n)
#pragma unroll
        for (std::uint32_t low = 0; low < 2; ++low)
          *reinterpret_cast<float2 *>(to + (16 * m + 8 * low) * kSumStride + 8 * n) = {sums[m][n][2 * low],
                                                                                       sums[m][n][2 * low + 1]};
  }
};
#endif

/// Adds the sums of the cluster's blocks in their order, bias and input, and stores this block's part of the cells.
__device__ void store_cells(const network_job &job, const block_places &block, const float *sums, std::uint32_t rank,
                            const float *biases, const std::uint16_t *input, std::uint16_t *output) {
  const std::uint32_t rows = job.plan.rows() / job.plan.parts;
  for (std::uint32_t at = threadIdx.x; at < rows * 32; at += kBlockThreads) {
    const std::uint32_t row = rank * rows + at / 32, channel = at % 32 * 4, place = block.lowest + row;
    if (place > block.highest)
      return; // so are the later ones
    if (!job.grid.has_cell(place))
      continue; // it stays 0
    const auto *const mine = reinterpret_cast<const float4 *>(sums + row * kSumStride + channel);
    float4 sum = *of_block(mine, 0);
#pragma unroll
    for (std::uint32_t part = 1; part < kGroups; ++part)
      if (part < job.plan.parts)
        add(sum, *of_block(mine, part));
    add(sum, *reinterpret_cast<const float4 *>(biases + channel));
    const four_halves in = *reinterpret_cast<const four_halves *>(channels_at(job.grid, input, place, channel));
    const float2 low = __half22float2(in.low), high = __half22float2(in.high);
    add(sum, {low.x, low.y, high.x, high.y});
    *reinterpret_cast<four_halves *>(channels_at(job.grid, output, place, channel)) = cut(sum);
  }
}
#endif

template <std::uint32_t Tiles>
__global__ void __launch_bounds__(kBlockThreads, 1)
    middle_kernel(const __grid_constant__ network_job job, const __grid_constant__ network_shot shot,
                  std::uint32_t layer) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) unsigned char memory[];
  const std::uint32_t rank = rank_in_cluster(), stages = kGroups / job.plan.parts * kGroupStages;
  const block_places block(job.grid, blockIdx.x / job.plan.parts, kTileRows * Tiles);
  const std::uint16_t *const input = shot.values[layer % 2];
  const layer_copies copies(job, block, input, job.middle + layer * kMiddleWeights, rank, shared_address(memory));
  for (std::uint32_t stage = 0; stage < kStagesAhead; ++stage)
    copies.copy_weights(stage); // there are at least 3
  block_sums<Tiles> sums;
  await_kernel_before();
  if (shot.state->active == 0) { // the same in all blocks
    await_copies<0>();
    return;
  }
  copies.copy_values(0);
  for (std::uint32_t stage = 0; stage < kStagesAhead; ++stage)
    end_copies_of_stage(); // the first has all copies so far
  for (std::uint32_t stage = 0; stage < stages; ++stage) {
    await_copies<kStagesAhead - 1>(); // of this thread; this stage is there
    show_copies_to_products();
    __syncthreads(); // of all threads; and no thread uses the stage before any more
    if (const std::uint32_t next = stage + kStagesAhead; next < stages) {
      copies.copy_weights(next);
      if (next % kGroupStages == 0)
        copies.copy_values(next / kGroupStages);
    }
    end_copies_of_stage(); // also without copies: each stage has one
    sums.multiply_stage(job, copies.values_at(stage / kGroupStages), copies.stage_at(stage), copies.slab_of(stage));
  }
  await_copies<0>();
  __syncthreads();
  auto *const shared_sums = reinterpret_cast<float *>(memory);
  sums.store(shared_sums);
  sync_cluster();
  store_cells(job, block, shared_sums, rank, job.biases + layer * kNetworkChannels, input,
              shot.values[(layer + 1) % 2]);
  sync_cluster(); // other blocks read the sums of this one
#endif
}

/// A warp for each group of channels, in the order of the groups added.
__global__ void __launch_bounds__(kBlockThreads)
    head_kernel(const __grid_constant__ network_job job, const __grid_constant__ network_shot shot) {
#if __CUDA_ARCH__ >= 900
  __shared__ float sums[kGroups][kHeadCells][8];
  const std::uint32_t lane = threadIdx.x % 32, group = threadIdx.x / 32, first = blockIdx.x * kHeadCells;
  const auto *const weights = reinterpret_cast<const uint2 *>(job.head) + std::size_t{group} * kTaps * 32 + lane;
  const std::uint16_t *from[kHeadCells / 8]; // of cells lane / 4 + 8 * n, channels 4 * (lane % 4) to + 3 of the group
#pragma unroll
  for (std::uint32_t n = 0; n < kHeadCells / 8; ++n) {
    const std::uint32_t cell = min(first + 8 * n + lane / 4, job.grid.cells() - 1);
    from[n] = shot.values[job.middles % 2] + job.grid.value(group, job.grid.place(cell)) + lane % 4 * 4;
  }
  await_kernel_before();
  if (shot.state->active == 0)
    return;
  float part[kHeadCells / 16][4] = {};
#pragma unroll 9
  for (std::uint32_t tap = 0; tap < kTaps; ++tap) {
    const uint2 b = weights[tap * 32];
    const std::int64_t distance = std::int64_t{job.grid.distance(tap)} * kGroupChannels;
#pragma unroll
    for (std::uint32_t m = 0; m < kHeadCells / 16; ++m) {
      const uint2 low = *reinterpret_cast<const uint2 *>(from[2 * m] + distance);
      const uint2 high = *reinterpret_cast<const uint2 *>(from[2 * m + 1] + distance);
      multiply(part[m], {{low.x, high.x, low.y, high.y}}, b.x, b.y);
    }
  }
#pragma unroll
  for (std::uint32_t m = 0; m < kHeadCells / 16; ++m)
#pragma unroll
    for (std::uint32_t k = 0; k < 4; ++k)
      sums[group][16 * m + k / 2 * 8 + lane / 4][lane % 4 * 2 + k % 2] = part[m][k];
  __syncthreads();
  const std::uint32_t row = threadIdx.x / 3, output = threadIdx.x % 3;
  if (row >= kHeadCells || first + row >= job.grid.cells())
    return;
  float logit = job.head_biases[output];
  for (std::uint32_t from_group = 0; from_group < kGroups; ++from_group)
    logit += sums[from_group][row][output];
  const std::size_t at = std::size_t{first + row} * 3 + output;
  apply_logit(job, shot, at, job.effects[at], logit);
#endif
}

__global__ void __launch_bounds__(kOneBlockThreads)
    write_kernel(const __grid_constant__ network_job job, const __grid_constant__ network_shot shot) {
  __shared__ std::uint32_t warp_sums[kMaxBlockThreads / 32];
  await_kernel_before();
  network_state &state = *shot.state;
  if (state.requested == 0)
    return;
  write_answer(block_group(warp_sums), job, state, shot.output);
  if (shot.from.ready != nullptr)
    set_ready(shot.from);
}

/// cluster: blocks of one.
template <class... Parameters>
cudaError_t launch_next(void (*kernel)(Parameters...), std::uint32_t blocks, std::uint32_t threads, std::size_t bytes,
                        std::uint32_t cluster, bool overlap, cudaStream_t stream, Parameters... values) {
  detail::launch_configuration launch(blocks, threads, bytes, stream, cluster);
  cudaLaunchAttribute both[2] = {launch.attribute, {}};
  both[launch.config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  both[launch.config.numAttrs].val.programmaticStreamSerializationAllowed = 1;
  launch.config.attrs = both;
  launch.config.numAttrs += overlap ? 1 : 0;
  void *arguments[] = {&values...};
  return cudaLaunchKernelExC(&launch.config, reinterpret_cast<const void *>(kernel),
                             arguments); // not <<<>>>: its own error
}

using layer_kernel = void (*)(network_job, network_shot, std::uint32_t);
/// Null: there is no such kernel.
layer_kernel kernel_of(std::uint32_t tiles) {
  static constexpr layer_kernel kAll[kMaxTiles] = {&middle_kernel<1>, &middle_kernel<2>, &middle_kernel<3>,
                                                   &middle_kernel<4>};
  return tiles >= 1 && tiles <= kMaxTiles ? kAll[tiles - 1] : nullptr;
}

} // namespace

cudaError_t max_layer_clusters(const layer_plan &plan, std::uint32_t &clusters) {
  clusters = 0;
  const layer_kernel kernel = kernel_of(plan.tiles);
  if (kernel == nullptr)
    return cudaErrorInvalidValue;
  const auto *const code = reinterpret_cast<const void *>(kernel);
  cudaFuncAttributes attributes{};
  if (const cudaError_t unknown = cudaFuncGetAttributes(&attributes, code); unknown != cudaSuccess)
    return unknown;
  if (attributes.ptxVersion < 90) // its body is empty
    return cudaErrorNoKernelImageForDevice;
  if (const cudaError_t refused = detail::allow_shared_memory(code, plan.bytes()); refused != cudaSuccess)
    return refused == cudaErrorInvalidValue ? cudaSuccess : refused; // too much: none
  const detail::launch_configuration launch(plan.parts, kBlockThreads, plan.bytes(), nullptr, plan.parts);
  int found = 0;
  cudaError_t error = cudaSuccess;
  if (plan.parts > 1) {
    error = cudaOccupancyMaxActiveClusters(&found, code, &launch.config);
  } else {
    int device = 0, processors = 0;
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&found, code, static_cast<int>(kBlockThreads), plan.bytes());
    if (error == cudaSuccess)
      error = cudaGetDevice(&device);
    if (error == cudaSuccess)
      error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    found *= processors;
  }
  clusters = error == cudaSuccess ? static_cast<std::uint32_t>(found) : 0;
  return error;
}

cudaError_t launch_network(const network_job &job, const network_shot &shot, bool overlap, cudaStream_t stream) {
  const layer_kernel middle = kernel_of(job.plan.tiles);
  if (middle == nullptr)
    return cudaErrorInvalidValue;
  const auto blocks = [&](std::uint32_t of_block) { return (job.grid.cells() + of_block - 1) / of_block; };
  cudaError_t error = launch_next(&read_kernel, 1, kOneBlockThreads, 0, 1, false, stream, job, shot);
  if (error == cudaSuccess)
    error = launch_next(&first_kernel, blocks(kBlockWarps), kBlockThreads, 0, 1, overlap, stream, job, shot);
  for (std::uint32_t layer = 0; layer < job.middles && error == cudaSuccess; ++layer)
    error = launch_next(middle, job.plan.clusters * job.plan.parts, kBlockThreads, job.plan.bytes(), job.plan.parts,
                        overlap, stream, job, shot, layer);
  if (error == cudaSuccess)
    error = launch_next(&head_kernel, blocks(kHeadCells), kBlockThreads, 0, 1, overlap, stream, job, shot);
  if (error == cudaSuccess)
    error = launch_next(&write_kernel, 1, kOneBlockThreads, 0, 1, overlap, stream, job, shot);
  return error;
}

} // namespace cudaq::qec::realtime::gpu
