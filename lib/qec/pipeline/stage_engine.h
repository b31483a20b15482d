// SPDX-License-Identifier: Apache-2.0
// A stage engine brings requests from the dispatcher to workers and runs the GPU stage. It is the only part of the
// pipeline that knows whether a GPU does the work.
#pragma once

#include "lib/qec/pipeline/pipeline_ring.h"

#include <cstddef>
#include <cstdint>

namespace cudaq::qec::realtime::detail {

/// The result of starting a GPU stage.
struct stage_launch {
  int error = 0;                 ///< 0, or the error that fails the request
  std::size_t response_size = 0; ///< without a CPU stage: number of bytes of the answer
};

/// The state of a stage that a worker waits for, as far as its engine knows.
struct stage_condition {
  enum class outcome {
    open,     ///< it may end
    answered, ///< it will not end, and the dispatcher has answered the request with the device's error
    failed    ///< it will not end, and the worker must answer the request with `error`
  };
  outcome what = outcome::open;
  int error = 0;
};

/// Whether the stage of a request that a worker has finished still runs, as far as the worker knows.
enum class stage_end { ended, may_run };

class stage_engine {
public:
  virtual ~stage_engine() = default;
  stage_engine() = default;
  stage_engine(const stage_engine &) = delete;
  stage_engine &operator=(const stage_engine &) = delete;

  /// wire registers the workers' functions with a dispatcher that does not run; unwire removes them.
  virtual void wire(cudaq_dispatcher_t *dispatcher) = 0;
  virtual void unwire(cudaq_dispatcher_t *dispatcher) noexcept = 0;
  /// Called before the first request. Passes on an exception of a worker's stage_begin_fn.
  virtual void begin_stages() = 0;
  /// Called after the dispatcher has stopped and the workers have ended, or when a start has failed. Returns the number
  /// of workers whose stage has not ended; it is then called again.
  virtual int end_stages() noexcept = 0;
  /// Called by a stop, after the dispatcher has stopped and the thread of `worker` has ended, while the consumer still
  /// runs. Reports a launch that came after that thread had ended. May be called again.
  virtual void report_late_launch(int) noexcept {}
  /// Removes a request that no worker has taken, for a stop. False: there is none.
  virtual bool drop_queued() noexcept { return false; }
  /// False: the workers have no threads, and the dispatcher answers by itself.
  virtual bool has_threads() const = 0;

  // --- called on the thread of `worker`, which has one request at a time; or on that of its worker for each buffer ---

  /// Makes the launch that the dispatcher has handed over, if there is one. Called before take(), and also while the
  /// worker may not take requests.
  virtual bool has_handed_over(int) noexcept { return false; }
  virtual void launch_handed_over(int) noexcept {}
  /// Takes the next request of this worker; its record is then in phase held. False: there is no request.
  virtual bool take(int worker, std::uint32_t &slot) = 0;
  /// Runs the stage, or finds that it was launched already.
  virtual stage_launch launch(int worker, std::uint32_t slot) = 0;
  /// The worker calls this from time to time while it waits. Throws nothing.
  virtual stage_condition check_stage(int worker, std::uint64_t generation) = 0;
  /// The worker has finished the request that it took. False: its stage may still run, and the worker must not take
  /// another request before the stage has reported its end.
  virtual bool release(int worker, stage_end stage) noexcept = 0;
  /// Called when the worker has no request and its thread is to end. False: it must take another turn first.
  virtual bool leave(int) noexcept { return true; }
};

} // namespace cudaq::qec::realtime::detail
