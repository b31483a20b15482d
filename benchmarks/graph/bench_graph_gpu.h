// SPDX-License-Identifier: Apache-2.0
// The graph that `graph` launches, by the dispatcher and bare: one kernel that sends its request back. Plain C++:
// host files include it, too.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"

#include <cstdint>
#include <cuda_runtime_api.h>

namespace cudaq::realtime::tools {

/// Kernel argument: the captured graph keeps it. Addresses are device addresses.
struct echo_task {
  GraphIOContext *io = nullptr;         ///< the kernel does nothing while its rx_slot is null
  const std::uint8_t *staged = nullptr; ///< where a hook copies the request to; null: the kernel reads the slot
  std::uint32_t frame_bytes = 64;       ///< header and payload, rounded up to a multiple of 16
  bool raises = false;                  ///< the kernel sets the tx flag of its context
  std::uint64_t busy_ns = 0;            ///< time that the kernel spins before it answers
};

/// Launches the kernel with one thread per 16 bytes, at least 32 and at most 1024 threads.
cudaError_t launch_echo(const echo_task &task, cudaStream_t stream);

} // namespace cudaq::realtime::tools
