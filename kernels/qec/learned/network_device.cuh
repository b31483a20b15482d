// SPDX-License-Identifier: Apache-2.0
// What the kernels of a chain and the fused kernel have in common: request, corrections and answer of a shot, and
// values of a layer.
#pragma once

#include "kernels/qec/block_group.cuh"
#include "kernels/qec/learned/network_kernels.h"

#include <cuda_fp16.h>

namespace cudaq::qec::realtime::gpu {

/// Checks the request and unpacks its events. Called by a whole block. frame: the request with its header; else
/// payload; both null: there is none. status: of the shot, if it is refused anyway. Returns the number of events.
__device__ inline std::uint32_t read_request(const block_group &group, const network_job &job, const network_shot &shot,
                                             const std::uint8_t *frame, decode_status status,
                                             std::uint32_t &shared_events) {
  network_state &state = *shot.state;
  const bool requested = frame != nullptr || shot.payload != nullptr;
  if (threadIdx.x == 0)
    shared_events = 0;
  if (status != decode_status::ok) {
  } else if (frame != nullptr) {
    status = detail::load_shot(group, job.layout, shot.readable, reinterpret_cast<const std::uint64_t *>(frame),
                               state.fired());
  } else if (shot.payload != nullptr) {
    const std::uint64_t own_word = threadIdx.x < job.layout.dense_words() ? shot.payload[threadIdx.x] : 0;
    status = detail::load_payload(group, job.layout, shot.readable, shot.payload,
                                  static_cast<std::uint32_t>(job.layout.input_bytes()), own_word, state.fired());
  }
  __syncthreads();
  if (requested && status == decode_status::ok) {
    std::uint32_t mine = 0;
    for (std::uint32_t w = threadIdx.x; w < job.layout.dense_words(); w += blockDim.x) {
      const std::uint64_t word = state.fired()[w]; // this thread has written it
      state.residual(job.layout)[w] = word;
      mine += static_cast<std::uint32_t>(__popcll(word));
    }
    for (std::uint32_t w = threadIdx.x; w < job.layout.frame_words(); w += blockDim.x)
      state.frame(job.layout)[w] = 0;
    if (mine != 0)
      atomicAdd(&shared_events, mine);
  }
  __syncthreads();
  const std::uint32_t events = shared_events;
  if (threadIdx.x == 0) {
    state.requested = requested ? 1 : 0;
    state.status = static_cast<std::int32_t>(status);
    state.events = events;
    state.corrections = 0;
    state.active = events != 0 ? 1 : 0;
  }
  return events;
}

/// The logit of an output of a cell, at 3 * cell + output: above the threshold it has its effect on detectors and
/// observables.
__device__ inline void apply_logit(const network_job &job, const network_shot &shot, std::size_t at,
                                   const network_effect &effect, float logit) {
  if (shot.logits != nullptr)
    shot.logits[at] = logit;
  if (!(logit > job.threshold) || effect.detectors == 0)
    return;
  network_state &state = *shot.state;
  atomicAdd(&state.corrections, 1u);
  for (std::uint32_t k = 0; k < effect.detectors + effect.observables; ++k) {
    const std::uint32_t index = job.lists[effect.first + k];
    std::uint64_t *const words = k < effect.detectors ? state.residual(job.layout) : state.frame(job.layout);
    atomicXor(&detail::halves(words)[index / 32], 1u << index % 32);
  }
}

/// Called by a whole block, if there was a request.
__device__ inline void write_answer(const block_group &group, const network_job &job, network_state &state,
                                    std::uint8_t *output) {
  const predecoder_layout layout = job.layout;
  auto *const header = reinterpret_cast<predecoder_header *>(output);
  if (state.status != 0) {
    if (threadIdx.x == 0)
      *header = {state.status, 0, 0, 0};
    return;
  }
  const auto words = static_cast<std::uint32_t>(layout.dense_words());
  const std::uint64_t *const residual = state.residual(layout);
  auto *const events = reinterpret_cast<std::uint32_t *>(output + layout.events_offset());
  const std::uint32_t left = detail::list_bits(group, residual, words, events, layout.num_detectors, nullptr);
  auto *const dense = reinterpret_cast<std::uint64_t *>(output + layout.dense_offset());
  for (std::uint32_t w = threadIdx.x; w < words; w += blockDim.x)
    dense[w] = residual[w];
  auto *const frame = reinterpret_cast<std::uint64_t *>(output + layout.frame_offset());
  for (std::uint32_t w = threadIdx.x; w < layout.frame_words(); w += blockDim.x)
    frame[w] = state.frame(layout)[w];
  if (threadIdx.x == 0)
    *header = {0, left, state.events, state.corrections};
}

/// A value of a layer that is cut at 0, and at the largest float16.
__device__ inline __half cut(float value) { return __float2half_rn(fminf(fmaxf(value, 0.0f), 65504.0f)); }
__device__ inline __half2 cut(float low, float high) { return __halves2half2(cut(low), cut(high)); }

struct alignas(8) four_halves {
  __half2 low, high;
};
__device__ inline four_halves cut(const float4 &v) { return {cut(v.x, v.y), cut(v.z, v.w)}; }
__device__ inline void add(float4 &sum, const float4 &v) {
  sum.x += v.x;
  sum.y += v.y;
  sum.z += v.z;
  sum.w += v.w;
}

/// Adds the first layer's weights (job.first) of the events near a cell, four outputs a lane. `fired`: of the lane's
/// tap; code: the detector there. Called by a whole warp.
__device__ inline void add_events(const float4 *weights, std::uint32_t code, bool fired, float4 &sum) {
  const std::uint32_t of_x = __ballot_sync(0xffffffffu, fired && code % 2 == 0);
  const std::uint32_t of_z = __ballot_sync(0xffffffffu, fired && code % 2 == 1);
  for (std::uint32_t left = of_x | of_z; left != 0; left &= left - 1) {
    const auto tap = static_cast<std::uint32_t>(__ffs(static_cast<int>(left)) - 1);
    add(sum, weights[(tap * 2 + (of_z >> tap & 1)) * 32 + threadIdx.x % 32]);
  }
}
/// The event of a code of job.detector_at.
__device__ inline bool has_fired(const std::uint64_t *words, std::uint32_t code) {
  const std::uint32_t detector = code / 2;
  return code != kNoDetector32 && (detail::halves(words)[detector / 32] >> detector % 32 & 1) != 0;
}

} // namespace cudaq::qec::realtime::gpu
