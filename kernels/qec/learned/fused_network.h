// SPDX-License-Identifier: Apache-2.0
// The fused kernel of the learned predecoder, as C++ code sees it: a shot is one launch, or a request to blocks that
// stay on the GPU (fused_layout.h). Its blocks wait for each other, so all of them must find room at a time. A wait is
// to end after 2 s, and the shot, and all later ones with its memory, to be answered as internal errors; but then the
// kernel does not end (docs/predecoding.md). It needs compute capability 9.0, and code for sm_90a.
#pragma once

#include "kernels/qec/learned/network_kernels.h"

#include "cudaq/qec/realtime/resident_workers.h"

namespace cudaq::qec::realtime::gpu {

/// The number of blocks that the current device runs at a time, in whole clusters; 0: none fits, or there is no such
/// kernel for it. words: of a shot.
cudaError_t max_fused_blocks(const fused_plan &plan, std::size_t words, std::uint32_t &blocks);

/// Puts a shot on the stream. cooperative: the launch waits until there is room for all of its blocks; without it the
/// caller sees to that.
cudaError_t launch_fused_network(const network_job &job, const network_shot &shot, bool cooperative,
                                 cudaStream_t stream);

/// For resident workers: the shots of worker w have the memory of_workers[w], in device memory.
resident_launcher launch_resident_network(const network_job &job, const network_shot *of_workers);

} // namespace cudaq::qec::realtime::gpu
