// SPDX-License-Identifier: Apache-2.0
// What carries a request from the dispatcher to a worker and runs the GPU stage on it: the only part of the pipeline
// that knows whether a GPU does the work.
#pragma once

#include "lib/qec/pipeline/pipeline_ring.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cudaq::qec::realtime::detail {

/// What a GPU stage said when it was started.
struct stage_launch {
  int error = 0;                 ///< not 0: the request has failed
  std::size_t response_size = 0; ///< without a CPU stage: bytes of the answer
};

class stage_engine {
public:
  virtual ~stage_engine() = default;
  stage_engine() = default;
  stage_engine(const stage_engine &) = delete;
  stage_engine &operator=(const stage_engine &) = delete;

  /// Makes the workers' functions known to a dispatcher that does not run, and forgets them again.
  virtual void wire(cudaq_dispatcher_t *dispatcher) = 0;
  virtual void unwire(cudaq_dispatcher_t *dispatcher) noexcept = 0;
  /// After the dispatcher's stop and the workers' end: no stage runs any more.
  virtual void settle() noexcept = 0;
  /// Workers have threads; false: the dispatcher answers by itself.
  virtual bool has_threads() const = 0;

  // --- on the thread of `worker`, which has one request at a time ---

  /// The next request of this worker; its record is then in phase queued. False: there is none.
  virtual bool take(int worker, std::uint32_t &slot) = 0;
  /// Runs the stage, or finds it launched.
  virtual stage_launch launch(int worker, std::uint32_t slot) noexcept = 0;
  /// The stage will not end: the request has been answered with the device's error. Asked now and then.
  virtual bool lost(int worker, std::uint64_t generation) noexcept = 0;
  /// The worker is done with the request that it took. ended: so is the stage, as far as the worker knows. False: it
  /// may run, and the worker must not take another request before it has said that the stage has ended.
  virtual bool release(int worker, bool ended) noexcept = 0;
};

} // namespace cudaq::qec::realtime::detail
