// SPDX-License-Identifier: Apache-2.0
// Kernels of the pipeline's own engines, as plain C++ sees them. Each finds its request by a GraphIOContext, or in the
// copy that a hook has made of it, does nothing while the slot is null (the warm-up run of capture_graph), and ends
// with the worker's ready flag.
#pragma once

#include "kernels/qec/predecode_body.h"

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"

#include <cuda_runtime_api.h>

namespace cudaq::qec::realtime::gpu {

/// How a worker's graph finds its request and says that it is done. Addresses are the device's.
struct request_source {
  const cudaq::realtime::GraphIOContext *io = nullptr;
  const std::uint8_t *staging = nullptr; ///< where the hook copies the frame to; null: it is read in the slot
  volatile int *ready = nullptr;
};

/// The predecoder: one block. False: the model is too large for the block's memory.
bool fits_a_block(const predecoder_layout &layout);
cudaError_t launch_predecode(const request_source &from, const predecode_job &job, cudaStream_t stream);

/// Passthrough of bytes: the frame, header included, in steps of 16 bytes. `busy_ns` beforehand, for benchmarks.
struct copy_job {
  std::uint8_t *output = nullptr; ///< 16-byte aligned
  std::uint32_t frame_bytes = 0;  ///< a multiple of 16
  std::uint64_t busy_ns = 0;
};
cudaError_t launch_copy(const request_source &from, const copy_job &job, cudaStream_t stream);

} // namespace cudaq::qec::realtime::gpu
