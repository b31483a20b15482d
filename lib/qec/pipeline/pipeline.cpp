// SPDX-License-Identifier: Apache-2.0
// The public classes. Their implementation is in pipeline_core.h and pipeline_ring.h.
#include "cudaq/qec/realtime/pipeline.h"

#include "lib/qec/pipeline/pipeline_core.h"

#include <stdexcept>
#include <utility>

namespace cudaq::qec::realtime::experimental {

using cudaq::realtime::detail::idle_strategy;
using detail::pipeline_ring;

struct ring_buffer_injector::state {
  pipeline_ring &ring;
  idle_strategy idle;
  detail::counter stalls;
};

ring_buffer_injector::ring_buffer_injector(std::unique_ptr<state> s) : state_(std::move(s)) {}
ring_buffer_injector::~ring_buffer_injector() = default;
ring_buffer_injector::ring_buffer_injector(ring_buffer_injector &&) noexcept = default;
ring_buffer_injector &ring_buffer_injector::operator=(ring_buffer_injector &&) noexcept = default;

bool ring_buffer_injector::try_submit(std::uint32_t function_id, const void *payload, std::size_t payload_size,
                                      std::uint64_t request_id) {
  return state_->ring.submit(function_id, payload, payload_size, request_id) == pipeline_ring::admission::accepted;
}

void ring_buffer_injector::submit(std::uint32_t function_id, const void *payload, std::size_t payload_size,
                                  std::uint64_t request_id) {
  idle_strategy idle = state_->idle;
  for (bool stalled = false;; stalled = true) {
    const pipeline_ring::admission admitted = state_->ring.submit(function_id, payload, payload_size, request_id);
    if (admitted == pipeline_ring::admission::accepted)
      return;
    if (admitted == pipeline_ring::admission::closed)
      throw std::runtime_error("pipeline: submit: the pipeline is stopped, or its run has failed; call start first");
    if (!stalled) {
      state_->stalls.bump();
      state_->ring.stalls().add();
    }
    idle.after_turn(0);
  }
}

std::uint64_t ring_buffer_injector::backpressure_stalls() const { return state_->stalls.value(); }

class realtime_pipeline::impl final : public detail::pipeline_core {
public:
  using pipeline_core::pipeline_core;
};

realtime_pipeline::realtime_pipeline(const pipeline_stage_config &config) : impl_(std::make_unique<impl>(config)) {}

realtime_pipeline::~realtime_pipeline() {
  try {
    impl_->stop();
  } catch (...) { // a callback of this pipeline destroys it: the callback's thread cannot end now
    static_cast<void>(impl_.release());
    return;
  }
  // A thread that is stuck in a callback still uses this memory.
  if (!impl_->ended())
    static_cast<void>(impl_.release());
}

void realtime_pipeline::set_gpu_stage(gpu_stage_factory factory) { impl_->set_gpu_stage(std::move(factory)); }
void realtime_pipeline::set_cpu_stage(cpu_stage_callback callback) { impl_->set_cpu_stage(std::move(callback)); }
void realtime_pipeline::set_completion_handler(completion_callback handler) {
  impl_->set_completion_handler(std::move(handler));
}
void realtime_pipeline::start() { impl_->start(); }
void realtime_pipeline::stop() { impl_->stop(); }
stop_report realtime_pipeline::last_stop() const { return impl_->last_stop(); }
std::string realtime_pipeline::dump() const { return impl_->dump(); }

ring_buffer_injector realtime_pipeline::create_injector() {
  if (impl_->ring().external())
    throw std::logic_error("pipeline: create_injector: the ring is external, so only its own producer fills it");
  return ring_buffer_injector(
      std::make_unique<ring_buffer_injector::state>(ring_buffer_injector::state{impl_->ring(), impl_->idle(), {}}));
}

realtime_pipeline::Stats realtime_pipeline::stats() const {
  const detail::pipeline_ring &ring = impl_->ring();
  // Completions are read first, so that a snapshot never has more completions than submissions.
  const std::uint64_t completed = impl_->completed();
  const cudaq_dispatcher_stats_t dispatcher = impl_->dispatcher_stats();
  return {ring.external() ? dispatcher.received : ring.submitted(), completed, dispatcher.dispatched,
          ring.stalls().value()};
}

void realtime_pipeline::complete_deferred(int slot) { impl_->complete_deferred(slot, nullptr, 0); }
void realtime_pipeline::complete_deferred(int slot, std::size_t response_size, int status) {
  impl_->complete_deferred(slot, &response_size, status);
}
bool realtime_pipeline::complete_deferred(int slot, std::uint64_t generation, std::size_t response_size, int status) {
  return impl_->complete_deferred(slot, generation, response_size, status);
}

realtime_pipeline::ring_buffer_bases realtime_pipeline::ringbuffer_bases() const {
  return {impl_->ring().ring().rx_data_host, impl_->ring().ring().rx_data};
}

} // namespace cudaq::qec::realtime::experimental
