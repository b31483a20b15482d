// SPDX-License-Identifier: Apache-2.0
// The graphs of the host dispatcher's GPU tests, in plain C++. A graph is one kernel: it finds its request, checks it
// as the checked functions do, answers, and sets the flag or word that its task names.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"
#include "unittests/gpu/support/handlers.h"

#include <cuda_runtime_api.h>

namespace cudaq::realtime::test {

/// A request whose payload begins with this word ends the context if the task has `traps` set.
inline constexpr std::uint64_t kTrapWord = 0x7a9b0b0bull;

/// What the graph of one worker does. It is a kernel argument and therefore a constant of the graph; all addresses are
/// device addresses.
struct graph_task {
  std::uint32_t function = 0;     ///< checked function k
  std::int32_t status = 0;        ///< status of the answer
  GraphIOContext *io = nullptr;   ///< the graph finds its slots here, or by the mailbox
  void *const *mailbox = nullptr; ///< the worker's mailbox word; used with the next two fields
  const cudaq_ringbuffer_t *ring = nullptr;
  const std::uint8_t *staged = nullptr; ///< the copy of the request that a hook makes; null: the graph reads the slot
  checked_record *record = nullptr;     ///< null: the request is not checked, and the result is empty
  std::uint32_t slot_size = 0;
  bool raises = false;                     ///< the graph raises the tx flag of its io context
  bool traps = false;                      ///< the graph traps on kTrapWord
  volatile std::uint64_t *ready = nullptr; ///< the graph sets this word to 1 after the frame
  std::uint64_t delay_ns = 0;              ///< waiting time before it reads its request; at most some seconds
};

inline constexpr std::uint32_t kMaxGraphSlot = 8192; ///< bytes of the largest slot that a task can serve

/// The kernel does nothing if the slot is null, as in a warm-up run.
cudaError_t launch_graph_task(const graph_task &task, cudaStream_t stream);
/// Waits `ns`, at most some seconds.
cudaError_t launch_wait(std::uint64_t ns, cudaStream_t stream);

} // namespace cudaq::realtime::test
