// SPDX-License-Identifier: Apache-2.0
// What the graph workers of a host dispatcher need from CUDA. The library's implementation is
// lib/api/host_path/cuda_graph_launcher.h. The tests use an implementation that needs no GPU, to check all other parts
// of the workers without one.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_types.h"
#include "lib/base/callback.h"

#include <cstdint>
#include <cuda_runtime_api.h>
#include <functional>

namespace cudaq::realtime::detail {

struct launch_result {
  int error = cudaErrorUnknown; ///< not 0: the graph was not launched; work that a hook has queued may still run
  bool hook_threw = false;
};

/// Calls a hook of the worker of this function; `hook` may be NULL. False: it threw.
inline bool run_hook(cudaq_host_launch_hook_t hook, void *user, void *slot_dev, cudaStream_t stream,
                     std::uint32_t function_id) {
  try {
    if (hook != nullptr)
      must_return([&] { hook(user, slot_dev, stream); }, "a launch hook of function", function_id);
    return true;
  } catch (...) {
    return false;
  }
}

/// Errors are CUDA errors; 0 means no error. Workers have the numbers 0..63. Calls come from the dispatcher's thread,
/// except where "any thread" is stated.
class graph_launcher {
public:
  virtual ~graph_launcher() = default;

  /// Runs `body`, the dispatcher's loop, on the calling thread with the workers' device current.
  virtual void run_on_device(const std::function<void()> &body) = 0;
  /// Shows the worker its request in `slot` and calls its pre-launch hook. A hook that throws prevents the launch.
  virtual void stage(std::uint32_t worker, std::uint32_t slot, launch_result &result) = 0;
  /// After stage, if its result has no error: launches the worker's graph and calls the post-launch hook; if that
  /// throws, the launch is not undone. If the worker's completion is not CALLER_PUBLISHES, done_word(worker) becomes
  /// `launch_number` after the end of the graph; the graph's writes are visible then.
  virtual void launch(std::uint32_t worker, std::uint32_t slot, std::uint64_t launch_number, launch_result &result) = 0;
  /// In place of launch, for a worker that the caller frees: launches the graph, without the post-launch hook.
  /// `stages`: in place of stage, too. Any thread.
  virtual void launch_elsewhere(std::uint32_t worker, std::uint32_t slot, bool stages, launch_result &result) = 0;
  virtual const volatile std::uint64_t &done_word(std::uint32_t worker) const = 0;

  // Off the hot path.
  /// After a failed launch, when the worker is idle: makes it usable again. Returns the sticky error of the whole
  /// context, or 0.
  virtual int recover(std::uint32_t worker) = 0;
  /// The sticky error of the context, or 0. Called from time to time while a graph runs. Any thread.
  virtual int fault() = 0;
  /// True if no work of the worker runs or waits on the device. Any thread.
  virtual bool idle(std::uint32_t worker) = 0;
  /// True if the worker's graphs and the work of the legacy stream wait for each other. Any thread.
  virtual bool on_blocking_stream(std::uint32_t worker) const = 0;
};

} // namespace cudaq::realtime::detail
