// SPDX-License-Identifier: Apache-2.0
// The graphs of the host dispatcher's GPU tests, as plain C++ sees them: one kernel that finds its request, checks it
// as the checked functions do, answers, and tells whoever is to know.
#pragma once

#include "unittests/gpu/support/handlers.h"

namespace cudaq::realtime::test {

/// A request whose payload begins with this ends the context, if the task says so.
inline constexpr std::uint64_t kTrapWord = 0x7a9b0b0bull;

/// What one worker's graph does. Kernel argument, so baked into the graph; all addresses are the device's.
struct graph_task {
  std::uint32_t function = 0;     ///< checked function k
  std::int32_t status = 0;        ///< of the response
  GraphIOContext *io = nullptr;   ///< where the slots are, or
  void *const *mailbox = nullptr; ///< the worker's word, with the next two
  const cudaq_ringbuffer_t *ring = nullptr;
  const std::uint8_t *staged = nullptr; ///< where a hook has copied the request to; null: it is read from the slot
  checked_record *record = nullptr;     ///< null: the request is not checked, and the result empty
  std::uint32_t slot_size = 0;
  bool raises = false;                     ///< raises the tx flag of its io context
  bool traps = false;                      ///< on kTrapWord
  volatile std::uint64_t *ready = nullptr; ///< set to 1 behind the frame
  std::uint64_t delay_ns = 0;              ///< before it reads its request; at most some seconds
};

inline constexpr std::uint32_t kMostGraphSlot = 8192; ///< bytes of a slot that a task can serve

/// Does nothing where the slot is null, as in a warm-up run.
cudaError_t launch_graph_task(const graph_task &task, cudaStream_t stream);
/// Waits `ns`, at most some seconds.
cudaError_t launch_wait(std::uint64_t ns, cudaStream_t stream);

} // namespace cudaq::realtime::test
