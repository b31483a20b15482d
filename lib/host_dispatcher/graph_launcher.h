// SPDX-License-Identifier: Apache-2.0
// What the graph workers of a host dispatcher need of CUDA. The library's own is
// lib/api/host_path/cuda_graph_launcher.h; the tests bring one that needs no GPU, so that everything else about the
// workers can be checked without one.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"

#include <cstdint>
#include <functional>

namespace cudaq::realtime::detail {

struct launch_result {
  int error = 0; ///< nothing was launched; what a hook has queued may still run
  bool hook_threw = false;
};

/// Calls a hook, if there is one. False: it threw.
inline bool run_hook(cudaq_host_launch_hook_t hook, void *user, void *slot_dev, cudaStream_t stream) noexcept {
  try {
    if (hook != nullptr)
      hook(user, slot_dev, stream);
    return true;
  } catch (...) {
    return false;
  }
}

/// Errors are CUDA errors, 0: none. A worker is named by its number, 0..63.
class graph_launcher {
public:
  virtual ~graph_launcher() = default;

  /// Runs `body`, the dispatcher's loop, on the calling thread with the workers' device current.
  virtual void run_on_device(const std::function<void()> &body) = 0;
  /// Starts the worker's graph, with its hooks, for the request in `slot`. Unless the caller publishes for this worker,
  /// done_word(worker) becomes `launch_number` when the graph has ended, and what it wrote is visible then. A
  /// pre-launch hook that throws stops the launch; a post-launch hook that throws does not undo it.
  virtual launch_result launch(std::uint32_t worker, std::uint32_t slot, std::uint64_t launch_number) noexcept = 0;
  virtual const volatile std::uint64_t &done_word(std::uint32_t worker) const = 0;

  // Off the hot path.
  /// After a failed launch, when the worker is idle: makes it usable again. Returns the error in which the whole
  /// context is stuck.
  virtual int recover(std::uint32_t worker) = 0;
  /// The error in which the context is stuck. Called from time to time while a graph runs. Any thread.
  virtual int fault() = 0;
  /// Nothing of the worker runs or waits on the device. Any thread.
  virtual bool idle(std::uint32_t worker) = 0;
};

} // namespace cudaq::realtime::detail
