// SPDX-License-Identifier: Apache-2.0
// The engine without a GPU. The dispatcher calls a v2 handler that defers the request and puts its slot into the
// queue of its function. The first free worker of that function runs the host stage on its own thread.
#pragma once

#include "lib/base/slot_queue.h"
#include "lib/qec/pipeline/stage_engine.h"

#include <memory>

namespace cudaq::qec::realtime::detail {

class host_engine final : public stage_engine {
public:
  host_engine(pipeline_ring &ring, const std::vector<experimental::gpu_worker_resources> &workers);

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
    experimental::gpu_worker_resources resources;
    function *serves;
    bool runs = false;  ///< an asynchronous stage may still run
    bool begun = false; ///< stage_end_fn must be called
  };
  static std::int32_t accept(cudaq_host_call_t *call, void *to) noexcept;

  pipeline_ring &ring_;
  std::vector<std::unique_ptr<function>> functions_;
  std::vector<worker> workers_;
};

} // namespace cudaq::qec::realtime::detail
