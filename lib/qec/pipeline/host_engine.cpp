// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/pipeline/host_engine.h"

#include "lib/base/callback.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace cudaq::qec::realtime::detail {

using cudaq::realtime::detail::must_return;
using cudaq::realtime::detail::slot_queue;
using cudaq::realtime::detail::store_release;
using experimental::gpu_worker_resources;
using experimental::host_stage_call;

host_engine::host_engine(pipeline_ring &ring, const std::vector<gpu_worker_resources> &buffers, int num_workers)
    : ring_(ring) {
  for (std::size_t id = 0; id < buffers.size(); ++id) {
    const std::uint32_t function_id = buffers[id].function_id; // that of its worker
    auto known =
        std::find_if(functions_.begin(), functions_.end(), [&](const auto &f) { return f->id == function_id; });
    if (known == functions_.end())
      known = functions_.insert(known, std::make_unique<function>(*this, function_id, ring.num_slots()));
    if (id < static_cast<std::size_t>(num_workers))
      workers_.emplace_back(known->get());
    buffers_.emplace_back(buffers[id], workers_[id % static_cast<std::size_t>(num_workers)]);
  }
}

void host_engine::wire(cudaq_dispatcher_t *dispatcher) {
  for (const auto &f : functions_)
    if (cudaq_dispatcher_set_host_handler_v2(dispatcher, f->id, &host_engine::accept, f.get(), nullptr) != CUDAQ_OK)
      throw std::runtime_error(std::string("pipeline: ") + cudaq_last_error_message());
}

void host_engine::unwire(cudaq_dispatcher_t *dispatcher) noexcept {
  for (const auto &f : functions_)
    cudaq_dispatcher_set_host_handler_v2(dispatcher, f->id, nullptr, nullptr, nullptr);
}

void host_engine::begin_stages() {
  for (buffer &w : buffers_) {
    if (w.resources.stage_begin_fn != nullptr)
      must_return([&] { w.resources.stage_begin_fn(w.resources.host_stage_data); }, "stage_begin_fn of function",
                  w.resources.function_id);
    w.begun = w.resources.stage_end_fn != nullptr;
  }
}

int host_engine::end_stages() noexcept {
  for (buffer &w : buffers_) {
    try {
      w.begun = w.begun && !must_return([&] { return w.resources.stage_end_fn(w.resources.host_stage_data); },
                                        "stage_end_fn of function", w.resources.function_id);
    } catch (...) { // it still runs
    }
  }
  return static_cast<int>(std::count_if(buffers_.begin(), buffers_.end(), [](const buffer &w) { return w.begun; }));
}

std::int32_t host_engine::accept(cudaq_host_call_t *call, void *to) noexcept {
  auto &f = *static_cast<function *>(to);
  pipeline_ring &ring = f.engine.ring_;
  const std::uint32_t slot = call->job.slot;
  request_record &record = ring.record(slot);
  record.payload_size = call->payload_len;
  if (ring.external()) // no injector has filled it in
    record.request_id = call->job.request_id;
  if (!ring.in_place()) // else the last answer's header could be taken for one that the CPU stage has written
    std::memset(ring.tx_slot(slot), 0, sizeof(cudaq_rpc_response_t));
  record.state.start_at(call->job.generation, request_phase::held);
  // A slot is accepted again only after its answer. The worker that answers has popped it, or a stop has answered; the
  // queue may then hold it twice, but no stage runs any more.
  f.queue.push(slot);
  return CUDAQ_HOST_CALL_DEFERRED;
}

bool host_engine::another_is_idle(const worker &than) const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [&](const worker &w) { return w.serves == than.serves && &w != &than && w.in_hand.peek() == 0; });
}

bool host_engine::take(int id, std::uint32_t &slot) {
  worker &w = buffers_[static_cast<std::size_t>(id)].of;
  slot_queue &queue = w.serves->queue;
  const std::uint32_t in_hand = w.in_hand.peek();
  // An empty queue may get a slot at any moment: then the next turn takes it.
  if ((in_hand != 0 && (queue.empty() || another_is_idle(w))) || !queue.pop(slot))
    return false;
  w.in_hand.set(in_hand + 1);
  return true;
}

bool host_engine::drop_queued() noexcept {
  std::uint32_t slot = 0;
  return std::any_of(functions_.begin(), functions_.end(), [&](const auto &f) { return f->queue.pop(slot); });
}

stage_launch host_engine::launch(int id, std::uint32_t slot) {
  buffer &self = buffers_[static_cast<std::size_t>(id)];
  const gpu_worker_resources &w = self.resources;
  // The stage reads the payload in the slot: a deferred request keeps its rx flag, so its slot is not refilled before
  // the answer.
  std::uint8_t *const frame = ring_.rx_slot(slot);
  std::uint8_t *const device_view = ring_.ring().rx_data; // nullptr: plain memory
  void *const slot_dev = device_view != nullptr ? device_view + slot * ring_.ring().rx_stride_sz : frame;
  host_stage_call call{id,
                       static_cast<int>(slot),
                       frame + CUDAQ_RPC_HEADER_SIZE,
                       ring_.record(slot).payload_size,
                       ring_.tx_slot(slot) + CUDAQ_RPC_HEADER_SIZE,
                       ring_.max_payload(),
                       0};
  stage_launch result;
  if (w.ready_flag != nullptr) // a stage that failed may have left it set
    store_release(*w.ready_flag, 0);
  try {
    if (w.pre_launch_fn != nullptr)
      must_return([&] { w.pre_launch_fn(w.pre_launch_data, slot_dev, nullptr); }, "a launch hook of function",
                  w.function_id);
    result.error =
        must_return([&] { return w.host_stage_fn(w.host_stage_data, &call); }, "the stage of function", w.function_id);
    self.runs = result.error == 0 && w.ready_flag != nullptr;
    if (result.error == 0 && w.post_launch_fn != nullptr)
      must_return([&] { w.post_launch_fn(w.post_launch_data, slot_dev, nullptr); }, "a launch hook of function",
                  w.function_id);
  } catch (...) {
    result.error = cudaErrorUnknown;
  }
  result.response_size = call.response_size;
  return result;
}

stage_condition host_engine::check_stage(int id, std::uint64_t) {
  const gpu_worker_resources &w = buffers_[static_cast<std::size_t>(id)].resources;
  int error = 0;
  try {
    if (w.stage_error_fn != nullptr)
      error =
          must_return([&] { return w.stage_error_fn(w.host_stage_data); }, "stage_error_fn of function", w.function_id);
  } catch (...) {
    error = cudaErrorUnknown;
  }
  return {error == 0 ? stage_condition::outcome::open : stage_condition::outcome::failed, error};
}

bool host_engine::release(int id, stage_end stage) noexcept {
  buffer &self = buffers_[static_cast<std::size_t>(id)];
  self.runs = self.runs && stage == stage_end::may_run;
  if (!self.runs)
    self.of.in_hand.set(self.of.in_hand.peek() - 1);
  return !self.runs;
}

} // namespace cudaq::qec::realtime::detail
