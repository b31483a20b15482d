// SPDX-License-Identifier: Apache-2.0
// The relay-bp kernel, as C++ code sees it.
#pragma once

#include "kernels/qec/relay_bp/relay_bp_job.h"

#include "cudaq/qec/realtime/resident_workers.h"

#include <cuda_runtime_api.h>

namespace cudaq::qec::realtime::gpu {

/// A launcher for a kernel with job.chains blocks, which serve one mailbox together. After load_relay_bp.
resident_launcher launch_relay_bp(const relay_job &job, relay_variant variant);

/// Loads the kernel of each variant on the current device: one that is loaded later would wait for the blocks that run.
cudaError_t load_relay_bp();

/// The most chains of `parts` blocks, a cluster each, that are on the current device at the same time if nothing else
/// is. block_bytes: of shared memory that is allocated at the launch, for each block. Needs a device with clusters.
cudaError_t max_relay_chains(unsigned parts, std::size_t block_bytes, unsigned &chains);

} // namespace cudaq::qec::realtime::gpu
