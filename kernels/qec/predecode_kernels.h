// SPDX-License-Identifier: Apache-2.0
// The kernels of the pipeline's own engines, as C++ code sees them. A kernel finds its request through a
// GraphIOContext, or in the copy that a hook has made. It does nothing while the slot is null (the warm-up run of
// capture_graph). Its last step sets the worker's ready flag.
#pragma once

#include "kernels/qec/predecode_body.h"

#include "cudaq/qec/realtime/resident_workers.h"
#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"

#include <cuda_runtime_api.h>

namespace cudaq::qec::realtime::gpu {

/// How a worker's graph finds its request and reports its end. Addresses are device addresses.
struct request_source {
  const cudaq::realtime::GraphIOContext *io = nullptr;
  const std::uint8_t *staging = nullptr; ///< the hook copies the frame here; null: the kernel reads the slot
  volatile int *ready = nullptr;
};

/// True if the model fits into the shared memory of the predecoder's one block.
bool fits_a_block(const predecoder_layout &layout);
/// output: job.layout.bytes(), 16-byte aligned.
cudaError_t launch_predecode(const request_source &from, const predecode_job &job, std::uint8_t *output,
                             cudaStream_t stream);

/// The same kernel's body as the stage of resident workers.
resident_launcher launch_resident_predecoder(const predecode_job &job);

/// Passthrough of bytes: copies the frame, header included, in steps of 16 bytes. Waits `busy_ns` first, for
/// benchmarks.
struct copy_job {
  std::uint8_t *output = nullptr; ///< 16-byte aligned
  std::uint32_t frame_bytes = 0;  ///< a multiple of 16
  std::uint64_t busy_ns = 0;
};
cudaError_t launch_copy(const request_source &from, const copy_job &job, cudaStream_t stream);

} // namespace cudaq::qec::realtime::gpu
