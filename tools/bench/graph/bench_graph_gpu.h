// SPDX-License-Identifier: Apache-2.0
// The graph that `bench graph` launches, by the dispatcher and bare: one kernel that sends its request back. Plain C++,
// so that host files include it as well.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"

#include <cstdint>

namespace cudaq::realtime::tools {

/// Kernel argument, so baked into the graph; addresses are the device's.
struct echo_task {
  GraphIOContext *io = nullptr;         ///< nothing is done while its slots are null
  const std::uint8_t *staged = nullptr; ///< where a hook copies the request to; null: it is read from the slot
  std::uint32_t frame_bytes = 64;       ///< header and payload, as many whole 16 bytes as hold them
  bool raises = false;                  ///< raises the tx flag of its context
  std::uint64_t busy_ns = 0;            ///< how long the kernel takes besides
};

/// Threads of the kernel: 16 bytes a thread, at most 1024.
cudaError_t launch_echo(const echo_task &task, cudaStream_t stream);

} // namespace cudaq::realtime::tools
