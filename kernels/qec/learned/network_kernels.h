// SPDX-License-Identifier: Apache-2.0
// The kernels of the learned predecoder, as C++ code sees them. A shot is a chain of kernels on one stream:
//
//   read       1 block     checks the request, unpacks the events
//   first      many        first layer: the constant part of each cell, and a row of weights for each event near it
//   middle     many        a layer; clusters of blocks if the grid is small. One kernel a layer
//   head       many        last layer; each output above the threshold toggles detectors and observables
//   write      1 block     counts and lists what is left, in the form of predecoder_output.h; sets the ready flag
//
// All sums have a fixed order, so the same shot gives the same bits. The kernels need compute capability 9.0.
#pragma once

#include "kernels/qec/learned/fused_layout.h"
#include "kernels/qec/predecode_kernels.h"

#include <cuda_runtime_api.h>

namespace cudaq::qec::realtime::gpu {

/// What an output of the network toggles: lists of detectors, then observables.
struct network_effect {
  std::uint32_t first, detectors, observables;
};

/// The network for one model of errors. Addresses are device addresses of constant memory.
struct network_job {
  padded_grid grid;
  predecoder_layout layout;
  layer_plan plan;
  fused_plan fused;          ///< rows not 0: for the fused kernel, whose layout middle and head then have
  std::uint32_t middles = 0; ///< layers between the first and the last
  const std::uint32_t *detector_at = nullptr; ///< by place: detector * 2 + kind, or kNoDetector32
  const std::uint32_t *cell_at = nullptr;     ///< of the fused kernel, by place: the cell, or kNoCell
  const float *constant = nullptr;            ///< by cell: 128 outputs of the first layer without events
  const float *first = nullptr;               ///< first_weight
  const std::uint16_t *middle = nullptr;      ///< kMiddleWeights for each layer
  const float *biases = nullptr;              ///< 128 for each middle layer
  const std::uint16_t *head = nullptr;        ///< head_weight
  float head_biases[3] = {};
  float threshold = 0;
  const network_effect *effects = nullptr; ///< three of each cell
  const std::uint32_t *lists = nullptr;
};

/// The head of a shot's memory. fired, residual and frame follow it.
struct network_state {
  std::uint32_t requested; ///< 0: there is no request
  std::int32_t status;     ///< decode_status
  std::uint32_t active;    ///< 0: no events, or an error: the layers do nothing
  std::uint32_t events, corrections, unused;

  static constexpr std::size_t bytes(const predecoder_layout &l);
  CUDAQ_QEC_HOST_DEVICE std::uint64_t *fired() { return reinterpret_cast<std::uint64_t *>(this + 1); }
  CUDAQ_QEC_HOST_DEVICE std::uint64_t *residual(const predecoder_layout &l) { return fired() + l.dense_words(); }
  CUDAQ_QEC_HOST_DEVICE std::uint64_t *frame(const predecoder_layout &l) { return residual(l) + l.dense_words(); }
};
static_assert(sizeof(network_state) % sizeof(std::uint64_t) == 0);
constexpr std::size_t network_state::bytes(const predecoder_layout &l) {
  return sizeof(network_state) + (2 * l.dense_words() + l.frame_words()) * sizeof(std::uint64_t);
}

/// Memory of one shot, and where it comes from and goes to.
struct network_shot {
  std::uint16_t *values[2] = {}; ///< kGroups * places() * 16, with zeros outside the grid
  network_state *state = nullptr;
  fused_meeting *meeting = nullptr;       ///< of the fused kernel
  request_source from;                    ///< io null: the request is `payload`
  const std::uint64_t *payload = nullptr; ///< layout.input_bytes(), readable in whole words
  std::uint32_t readable = UINT32_MAX;    ///< payload bytes that the frame's memory has; longer requests are refused
  std::uint8_t *output = nullptr;         ///< layout.bytes(), 16-byte aligned
  float *logits = nullptr;                ///< three of each cell, or null; unchanged by a shot without events
};

/// Puts the kernels of a shot on the stream. `overlap`: the blocks of a kernel start, and load their weights, while the
/// kernel before it ends.
cudaError_t launch_network(const network_job &job, const network_shot &shot, bool overlap, cudaStream_t stream);

/// The number of clusters of a middle layer that the current device runs at a time. plan.clusters is not used. 0: none
/// fits. cudaErrorNoKernelImageForDevice: the kernels were compiled for a compute capability below 9.0 only.
cudaError_t max_layer_clusters(const layer_plan &plan, std::uint32_t &clusters);

} // namespace cudaq::qec::realtime::gpu
