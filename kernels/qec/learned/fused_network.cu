// SPDX-License-Identifier: Apache-2.0
#include "kernels/qec/learned/fused_network.h"

#include "kernels/qec/learned/fused_layers.cuh"

#include "cudaq/qec/realtime/resident_kernel.cuh"

#include <algorithm>
#include <array>
#include <utility>

namespace cudaq::qec::realtime::gpu {
namespace {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
/// What a block does for one shot after another.
template <std::uint32_t Rows, std::uint32_t Halves, std::uint32_t Parts>
class shots_of_block {
public:
  static constexpr std::uint32_t kLayerThreads = Halves * 128;
  static constexpr std::uint32_t kBeside = 2 / Halves * Parts, kRows = (Rows + kBeside - 1) / kBeside;
  static constexpr std::uint32_t kThreads = kLayerThreads + 64, kOutputs = (3 * kRows + kThreads - 1) / kThreads;
  static constexpr std::uint32_t kPollsPerEndCheck = 1024; ///< between two across the bus

  /// number: among the blocks of a shot.
  __device__ shots_of_block(const network_job &job, const network_shot &shot, unsigned char *memory,
                            fused_shared &shared, std::uint32_t number)
      : job_(job), shot_(shot), memory_(memory), shared_(shared), block_(job, shot, shared, shared_at(memory), number),
        group_(shared.warp_sums), first_(block_, memory, kLayerThreads / 32), weights_(block_), layers_(block_) {
    if (threadIdx.x == 0) {
      shared.failed = 0;
      block_.wait.limit();
      make_barriers(shared_.barriers, job_.fused);
    }
  }
  /// Once: the first weights are on their way when it ends.
  __device__ void connect() {
    __syncthreads();
    meet_cluster();
    if (copies_weights())
      weights_.copy(weights_.ahead());
    __syncwarp();
    layers_.find_cells();
  }
  /// Before the events of a shot are known: the constant part of its first layer.
  __device__ void prepare() { first_.prepare(); }
  /// The leading block: the request.
  __device__ void begin(const std::uint8_t *frame) {
    const bool failed = load_flag(shot_.meeting->failed) != 0;
    const std::uint32_t events = read_request(
        group_, job_, shot_, frame, failed ? decode_status::internal_error : decode_status::ok, shared_.events);
    if (threadIdx.x == 0) {
      block_.wait.limit();
      set_flag(shot_.meeting->begun, 2 * shots_ + (events != 0 ? 3 : 2));
    }
    __syncthreads();
  }
  /// The others wait for it.
  __device__ void await_begin() {
    if (threadIdx.x == 0)
      block_.wait.wait([&] { return has_begun(); });
    __syncthreads();
  }
  /// Without a limit; false: is_over() says that no shot follows.
  template <class Over>
  __device__ bool await_begin_or_end(const Over &is_over) {
    bool begun = true;
    if (threadIdx.x == 0) {
      for (std::uint32_t poll = 1; !(begun = has_begun()); ++poll)
        if (poll % kPollsPerEndCheck == 0 && is_over())
          break;
      block_.wait.limit();
    }
    return __syncthreads_or(threadIdx.x == 0 && begun) != 0;
  }
  /// The leading block: until all blocks run, or is_over().
  template <class Over>
  __device__ void await_blocks(const Over &is_over) {
    if (threadIdx.x == 0)
      for (std::uint32_t poll = 1; load_flag(shot_.meeting->running) + 1 < job_.fused.blocks(); ++poll)
        if (poll % kPollsPerEndCheck == 0 && is_over())
          break;
    __syncthreads();
  }
  /// All blocks: what the network makes of the events. weights_ahead: those of the next shot are copied, too.
  __device__ void compute(bool weights_ahead) {
    const bool active = load_flag(shot_.meeting->begun) % 2 == 1 && shared_.failed == 0;
    if (active)
      run_layers(weights_.all() - (weights_ahead ? 0 : weights_.ahead()));
    else if (!weights_ahead && copies_weights())
      weights_.await();
    std::uint32_t cells[kOutputs];
    network_effect effects[kOutputs];
    if (active)
      load_effects(cells, effects);
    __syncthreads();
    meet_cluster();
    if (active) {
      apply_corrections(cells, effects);
      block_.layers_before += job_.middles + 1;
    }
    ++shots_;
    __syncthreads();
    if (threadIdx.x == 0) {
      if (shared_.failed != 0)
        atomicExch(&shot_.meeting->failed, 1u);
      add_to_flag(shot_.meeting->ended);
    }
    meet_cluster(); // other blocks have read the sums of this one
  }
  /// The leading block: the answer. false: there was no request.
  __device__ bool end(std::uint8_t *output) {
    network_state &state = *shot_.state;
    if (threadIdx.x == 0) {
      block_.wait.wait([&] { return load_flag(shot_.meeting->ended) == shots_ * job_.fused.blocks(); });
      if (shared_.failed != 0 || load_flag(shot_.meeting->failed) != 0)
        state.status = static_cast<std::int32_t>(decode_status::internal_error);
    }
    __syncthreads();
    if (state.requested == 0)
      return false;
    write_answer(group_, job_, state, output);
    return true;
  }
  /// After the only shot of a launch: all words as they were before.
  __device__ void reset() {
    fused_meeting &meeting = *shot_.meeting;
    for (std::uint32_t k = threadIdx.x; k < job_.fused.row_blocks; k += blockDim.x)
      meeting.done[k].blocks = 0;
    if (threadIdx.x == 0)
      meeting.begun = meeting.ended = 0;
  }
  /// After the last shot: no copy is on its way, here and in the cluster.
  __device__ void stop() {
    if (copies_weights())
      weights_.await();
    __syncthreads();
    meet_cluster();
  }

private:
  [[nodiscard]] __device__ bool copies_weights() const { return threadIdx.x == kLayerThreads; }
  [[nodiscard]] __device__ bool has_begun() const { return load_flag(shot_.meeting->begun) / 2 != shots_ % (1u << 31); }
  __device__ void run_layers(std::uint32_t stages_to_copy) {
    const std::uint32_t warp = threadIdx.x / 32;
    auto *const words = reinterpret_cast<std::uint64_t *>(memory_ + job_.fused.words_at());
    for (std::uint32_t w = threadIdx.x; w < job_.layout.dense_words(); w += blockDim.x)
      words[w] = __ldcg(reinterpret_cast<const unsigned long long *>(shot_.state->fired()) + w);
    __syncthreads();
    if (warp < kLayerThreads / 32) {
      first_.run(words);
      end_layer();
      for (std::uint32_t layer = 0; layer < job_.middles; ++layer) {
        layers_.run(layer);
        end_layer();
      }
      layers_.run_head();
    } else if (copies_weights()) {
      weights_.copy(stages_to_copy);
    } else if (warp == kLayerThreads / 32 + 1) {
      copy_values(block_, values_, kLayerThreads + 32);
    }
    __syncwarp();
  }
  __device__ void end_layer() {
    order_stores_and_copies();
    meet(kLayerEnds, kLayerThreads);
    if (threadIdx.x == 0)
      add_to_flag(shot_.meeting->done[block_.row_block].blocks);
  }
  /// Of the outputs of this block's part of the places: thread t has output t % 3 of row t / 3, and so on.
  __device__ void load_effects(std::uint32_t (&cells)[kOutputs], network_effect (&effects)[kOutputs]) const {
#pragma unroll
    for (std::uint32_t k = 0; k < kOutputs; ++k) {
      const std::uint32_t number = threadIdx.x + k * kThreads, row = block_.inside * kRows + number / 3;
      cells[k] = number / 3 < kRows && row < Rows ? job_.cell_at[block_.lowest + row] : kNoCell;
      if (cells[k] != kNoCell)
        effects[k] = job_.effects[std::size_t{cells[k]} * 3 + number % 3];
    }
  }
  __device__ void apply_corrections(const std::uint32_t (&cells)[kOutputs],
                                    const network_effect (&effects)[kOutputs]) const {
#pragma unroll
    for (std::uint32_t k = 0; k < kOutputs; ++k) {
      const std::uint32_t number = threadIdx.x + k * kThreads, row = block_.inside * kRows + number / 3;
      if (cells[k] == kNoCell)
        continue;
      float sums[kBeside * Halves], logit = job_.head_biases[number % 3];
#pragma unroll
      for (std::uint32_t from = 0; from < kBeside * Halves; ++from)
        sums[from] = load_at(of_rank(
            fused_layers<Rows, Halves, Parts>::head_sum(block_, from % Halves, number % 3, row), from / Halves));
#pragma unroll
      for (const float sum : sums)
        logit += sum;
      apply_logit(job_, shot_, std::size_t{cells[k]} * 3 + number % 3, effects[k], logit);
    }
  }

  const network_job &job_;
  const network_shot &shot_;
  unsigned char *memory_;
  fused_shared &shared_;
  fused_block block_;
  block_group group_;
  first_layer first_;
  weight_copies weights_;
  ring_place values_; ///< of the copies
  fused_layers<Rows, Halves, Parts> layers_;
  std::uint32_t shots_ = 0;
};
#endif

template <std::uint32_t Rows, std::uint32_t Halves, std::uint32_t Parts>
__global__ void __launch_bounds__(Halves * 128 + 64, 1)
    fused_kernel(const __grid_constant__ network_job job, const __grid_constant__ network_shot shot) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ fused_shared shared;
  shots_of_block<Rows, Halves, Parts> shots(job, shot, memory, shared, blockIdx.x);
  if (blockIdx.x == 0)
    shots.begin(shot.from.io != nullptr ? request_frame(shot.from) : nullptr);
  shots.connect();
  shots.prepare();
  if (blockIdx.x != 0)
    shots.await_begin();
  else
    __syncthreads();
  shots.compute(false);
  if (blockIdx.x != 0)
    return;
  if (shots.end(shot.output) && shot.from.ready != nullptr)
    set_ready(shot.from);
  shots.reset();
#endif
}

/// The blocks of one worker after those of another.
template <std::uint32_t Rows, std::uint32_t Halves, std::uint32_t Parts>
__global__ void __launch_bounds__(Halves * 128 + 64, 1)
    resident_fused_kernel(const __grid_constant__ resident_mailboxes boxes, const __grid_constant__ network_job job,
                          const network_shot *of_workers) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ fused_shared shared;
  const std::uint32_t worker = blockIdx.x / job.fused.blocks(), number = blockIdx.x % job.fused.blocks();
  const network_shot &shot = of_workers[worker];
  shots_of_block<Rows, Halves, Parts> shots(job, shot, memory, shared, number);
  shots.connect();
  shots.prepare();
  const auto is_over = [&] { return cudaq::realtime::detail::load_acquire(boxes.flags[boxes.workers]) != 0; };
  std::uint32_t &led = shot.meeting->led;
  if (number == 0) {
    if (threadIdx.x == 0)
      set_flag(led, 1);
    shots.await_blocks(is_over);
    serve_mailbox(detail::resident_group{}, boxes, worker, [&](const resident_request &request) {
      shots.begin(request.frame);
      shots.compute(true);
      shots.end(request.output);
      shots.prepare();
    });
    if (threadIdx.x == 0)
      set_flag(led, 2);
  } else {
    if (threadIdx.x == 0)
      add_to_flag(shot.meeting->running);
    const auto is_left = [&] { // a shot may have begun after the word that ends all, so only the leading block reads it
      const std::uint32_t now = load_flag(led);
      return now == 2 || (now == 0 && is_over() && load_flag(led) == 0); // 0: it may find no room, and serves nothing
    };
    while (shots.await_begin_or_end(is_left)) {
      shots.compute(true);
      shots.prepare();
    }
  }
  shots.stop();
#endif
}

struct fused_kernels {
  fused_form form;
  void (*of_a_shot)(network_job, network_shot);
  void (*resident)(resident_mailboxes, network_job, const network_shot *);
};
template <std::size_t... Index>
constexpr auto kernels_of(std::index_sequence<Index...>) {
  return std::array<fused_kernels, sizeof...(Index)>{
      {{kFusedForms[Index], &fused_kernel<kFusedForms[Index].rows, kFusedForms[Index].halves, kFusedForms[Index].parts>,
        &resident_fused_kernel<kFusedForms[Index].rows, kFusedForms[Index].halves, kFusedForms[Index].parts>}...}};
}
constexpr auto kKernels = kernels_of(std::make_index_sequence<std::size(kFusedForms)>{});

/// Null: there is none.
const fused_kernels *kernels_for(const fused_plan &plan) {
  const auto found = std::ranges::find_if(kKernels, [&](const fused_kernels &k) {
    return k.form.rows == plan.rows && k.form.halves == plan.halves && k.form.parts == plan.parts;
  });
  return found == kKernels.end() ? nullptr : &*found;
}

} // namespace

cudaError_t max_fused_blocks(const fused_plan &plan, std::size_t words, std::uint32_t &blocks) {
  blocks = 0;
  const fused_kernels *const kernels = kernels_for(plan);
  if (kernels == nullptr)
    return cudaErrorInvalidValue;
  const auto *const code = reinterpret_cast<const void *>(kernels->of_a_shot);
  int device = 0;
  if (const cudaError_t unknown = cudaGetDevice(&device); unknown != cudaSuccess)
    return unknown;
  cudaFuncAttributes attributes{};
  if (const cudaError_t unknown = cudaFuncGetAttributes(&attributes, code);
      unknown != cudaSuccess || attributes.sharedSizeBytes == 0) // its body is empty: this code is not for sm_90a
    return unknown;
  if (const cudaError_t refused = detail::allow_shared_memory(code, plan.bytes(words)); refused != cudaSuccess)
    return refused == cudaErrorInvalidValue ? cudaSuccess : refused; // too much: none
  const detail::launch_configuration launch(plan.beside(), plan.threads(), plan.bytes(words), nullptr, plan.beside());
  int found = 0, processors = 0;
  cudaError_t error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess && plan.beside() > 1)
    error = cudaOccupancyMaxActiveClusters(&found, code, &launch.config);
  else if (error == cudaSuccess)
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&found, code, static_cast<int>(plan.threads()),
                                                          plan.bytes(words));
  if (error == cudaSuccess)
    blocks =
        static_cast<std::uint32_t>(found) * (plan.beside() > 1 ? plan.beside() : static_cast<unsigned>(processors));
  return error;
}

cudaError_t launch_fused_network(const network_job &job, const network_shot &shot, bool cooperative,
                                 cudaStream_t stream) {
  const fused_kernels *const kernels = kernels_for(job.fused);
  if (kernels == nullptr)
    return cudaErrorInvalidValue;
  detail::launch_configuration launch(job.fused.blocks(), job.fused.threads(),
                                      job.fused.bytes(job.layout.dense_words()), stream, job.fused.beside());
  cudaLaunchAttribute both[2] = {launch.attribute, {}};
  both[launch.config.numAttrs].id = cudaLaunchAttributeCooperative;
  both[launch.config.numAttrs].val.cooperative = 1;
  launch.config.attrs = both;
  launch.config.numAttrs += cooperative ? 1 : 0;
  network_job job_copy = job;
  network_shot shot_copy = shot;
  void *arguments[] = {&job_copy, &shot_copy};
  return cudaLaunchKernelExC(&launch.config, reinterpret_cast<const void *>(kernels->of_a_shot), arguments);
}

resident_launcher launch_resident_network(const network_job &job, const network_shot *of_workers) {
  return [=](const resident_mailboxes &boxes, unsigned blocks, cudaStream_t stream) -> cudaError_t {
    const fused_kernels *const kernels = kernels_for(job.fused);
    if (kernels == nullptr)
      return cudaErrorInvalidValue;
    const unsigned all = boxes.workers * job.fused.blocks();
    return detail::launch_to_stay<resident_mailboxes, network_job, const network_shot *>(
        kernels->resident, all, blocks == 0 ? 0 : all, job.fused.beside(), job.fused.threads(),
        job.fused.bytes(job.layout.dense_words()), stream, boxes, job, of_workers);
  };
}

} // namespace cudaq::qec::realtime::gpu
