// SPDX-License-Identifier: Apache-2.0
// Kernels of `pipeline`. Plain C++: host files include it, too. Addresses are device addresses.
#pragma once

#include "cudaq/qec/realtime/resident_workers.h"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace cudaq::realtime::tools {

/// Keeps one thread busy.
cudaError_t launch_busy(std::uint64_t ns, cudaStream_t stream);
/// Sets a flag to 1, after all work before it on the stream.
cudaError_t launch_signal(volatile int *flag, cudaStream_t stream);
/// One warp: copies a word, then sets a flag to 1.
cudaError_t launch_word_and_signal(const std::uint64_t *from, std::uint64_t *to, volatile int *flag,
                                   cudaStream_t stream);
/// One block: keeps its threads busy, copies `bytes`, a multiple of 8 at addresses of 8, then sets a flag to 1.
cudaError_t launch_busy_copy_and_signal(std::uint64_t ns, const void *from, void *to, std::size_t bytes,
                                        volatile int *flag, cudaStream_t stream);
/// A resident stage of 128 threads that reads the request's first 8 bytes and writes the output's.
qec::realtime::gpu::resident_launcher launch_resident_first_word();

} // namespace cudaq::realtime::tools
