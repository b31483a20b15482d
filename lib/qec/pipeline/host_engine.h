// SPDX-License-Identifier: Apache-2.0
// The engine without a GPU. The dispatcher calls a v2 handler that defers the request and puts its slot into the
// queue of its function. The first free worker of that function runs the host stage on its own thread. A worker with
// several buffers takes a second request only while no other worker of the function is idle: that one begins earlier.
#pragma once

#include "lib/base/slot_queue.h"
#include "lib/qec/pipeline/stage_engine.h"

#include <deque>
#include <memory>

namespace cudaq::qec::realtime::detail {

class host_engine final : public stage_engine {
public:
  /// num_workers: threads; the buffers of worker w are w, w + num_workers, and so on.
  host_engine(pipeline_ring &ring, const std::vector<experimental::gpu_worker_resources> &buffers, int num_workers);

  void wire(cudaq_dispatcher_t *dispatcher) override;
  void unwire(cudaq_dispatcher_t *dispatcher) noexcept override;
  void begin_stages() override;
  int end_stages() noexcept override;
  bool has_threads() const override { return true; }
  bool take(int worker, std::uint32_t &slot) override;
  stage_launch launch(int worker, std::uint32_t slot) override;
  stage_condition check_stage(int worker, std::uint64_t generation) override;
  bool release(int worker, stage_end stage) noexcept override;
  bool drop_queued() noexcept override;

private:
  struct function {
    function(host_engine &of, std::uint32_t function_id, std::uint32_t num_slots)
        : engine(of), id(function_id), queue(num_slots) {}
    host_engine &engine;
    std::uint32_t id;
    cudaq::realtime::detail::slot_queue queue;
  };
  struct alignas(64) worker {
    explicit worker(function *of) : serves(of) {}
    function *const serves;
    shared_word<std::uint32_t> in_hand; ///< its requests, written by its thread
  };
  struct alignas(64) buffer {
    buffer(const experimental::gpu_worker_resources &with, worker &its) : resources(with), of(its) {}
    const experimental::gpu_worker_resources resources;
    worker &of;
    bool runs = false;  ///< an asynchronous stage may still run
    bool begun = false; ///< stage_end_fn must be called
  };
  static std::int32_t accept(cudaq_host_call_t *call, void *to) noexcept;
  bool another_is_idle(const worker &than) const;

  pipeline_ring &ring_;
  std::vector<std::unique_ptr<function>> functions_;
  std::deque<worker> workers_;
  std::deque<buffer> buffers_;
};

} // namespace cudaq::qec::realtime::detail
