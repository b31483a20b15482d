// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/pipeline/graph_engine.h"

#include "lib/base/trace_range.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace cudaq::qec::realtime::detail {

using cudaq::realtime::detail::load_frame;
using experimental::gpu_worker_resources;

graph_engine::graph_engine(pipeline_ring &ring, responder &to, const std::vector<gpu_worker_resources> &workers,
                           bool with_cpu_stage, bool workers_may_launch)
    : ring_(ring), responder_(to), with_cpu_stage_(with_cpu_stage), workers_may_launch_(workers_may_launch) {
  for (std::size_t id = 0; id < workers.size(); ++id)
    workers_.emplace_back(*this, static_cast<int>(id), workers[id]);
}

void graph_engine::wire(cudaq_dispatcher_t *dispatcher) {
  std::vector<cudaq_host_worker_t> graphs;
  for (worker &w : workers_) {
    cudaq_host_worker_t g{};
    g.struct_size = sizeof(g);
    g.graph_exec = w.resources.graph_exec;
    g.stream = w.resources.stream;
    g.function_id = w.resources.function_id;
    g.io_ctx = w.resources.io_ctx;
    g.completion = with_cpu_stage_ ? CUDAQ_WORKER_CALLER_PUBLISHES : CUDAQ_WORKER_LIBRARY_PUBLISHES;
    g.pre_launch_fn = &before_launch;
    g.pre_launch_data = &w;
    g.post_launch_fn = &after_launch;
    g.post_launch_data = &w;
    if (with_cpu_stage_ && workers_may_launch_ && w.resources.post_launch_fn == nullptr) {
      g.hand_over_fn = &hand_over;
      g.hand_over_data = &w;
      g.hand_over = w.resources.pre_launch_on_worker ? CUDAQ_HAND_OVER_HOOK_AND_LAUNCH : CUDAQ_HAND_OVER_LAUNCH;
    }
    graphs.push_back(g);
  }
  if (cudaq_dispatcher_set_host_workers(dispatcher, graphs.data(), graphs.size()) != CUDAQ_OK)
    throw std::runtime_error(std::string("pipeline: ") + cudaq_last_error_message());
  dispatcher_ = dispatcher;
}

void graph_engine::unwire(cudaq_dispatcher_t *dispatcher) noexcept {
  cudaq_dispatcher_set_host_workers(dispatcher, nullptr, 0);
}

// The dispatcher has stopped, so no graph runs.
int graph_engine::end_stages() noexcept {
  for (worker &w : workers_) {
    // In phase launched: after the end of the worker's thread.
    if (w.kept || (with_cpu_stage_ && w.launch.phase() == launch_phase::launched))
      cudaq_host_release_worker(dispatcher_, w.id);
    w.kept = false;
    w.launch.enter(launch_phase::none);
  }
  return 0;
}

// A hook was slower than the first stop: the worker's thread ended before the launch, and the dispatcher has answered
// the request.
void graph_engine::report_late_launch(int id) noexcept {
  worker &w = workers_[static_cast<std::size_t>(id)];
  if (!ring_.external()) // the consumer finds the answer in the slot
    return;
  const launch_word::snapshot seen = w.launch.load();
  cudaq_host_job_t job{};
  w.kept = w.kept || seen.phase == launch_phase::launched; // for end_stages
  if (seen.phase == launch_phase::launched && has_job(w, job)) {
    w.launch.enter(launch_phase::none); // a further stop must not report it again
    responder_.report_given_up({w.request_id.load(), w.slot.load(), CUDAQ_RPC_ERR_SHUTTING_DOWN, 0});
  } else {
    report_answered(w, seen);
  }
}

void graph_engine::before_launch(void *self, void *slot_dev, cudaStream_t stream) {
  auto &w = *static_cast<worker *>(self);
  if (!std::exchange(w.armed, false))
    w.engine.arm(w, w.engine.slot_at(slot_dev));
  if (w.resources.pre_launch_fn == nullptr)
    return;
  const cudaq::realtime::detail::trace_range range("qec staging");
  w.resources.pre_launch_fn(w.resources.pre_launch_data, slot_dev, stream);
}

void graph_engine::after_launch(void *self, void *slot_dev, cudaStream_t stream) {
  auto &w = *static_cast<worker *>(self);
  count_launch(w); // first: the user's hook may throw, but the graph runs
  if (w.resources.post_launch_fn != nullptr)
    w.resources.post_launch_fn(w.resources.post_launch_data, slot_dev, stream);
}

int graph_engine::hand_over(void *self, cudaq_host_launch_fn_t launch, void *launch_data) noexcept {
  auto &w = *static_cast<worker *>(self);
  w.handed_fn = launch;
  w.handed_data = launch_data;
  cudaq_host_job_t job{};
  // The request is armed on this thread in any case: a stop then finds the same words as without the option.
  if (w.resources.pre_launch_on_worker && w.engine.has_job(w, job)) { // a failed stage may have left `armed`
    w.engine.arm(w, job.slot);
    w.armed = true; // also if the worker's thread has ended: then before_launch follows here
  }
  return w.handed.claim(worker::offer::none, worker::offer::made);
}

// On the thread that has launched. A worker's launches never overlap: the next one follows its release.
void graph_engine::count_launch(worker &w) { w.launch.enter(launch_phase::launched); }

// False: an offer came before this, and the worker must take it.
bool graph_engine::leave(int id) noexcept {
  worker &w = workers_[static_cast<std::size_t>(id)];
  return w.handed.load() == worker::offer::closed || w.handed.claim(worker::offer::none, worker::offer::closed);
}

std::uint32_t graph_engine::slot_at(const void *slot_dev) const {
  return static_cast<std::uint32_t>(
      (reinterpret_cast<std::uintptr_t>(slot_dev) - reinterpret_cast<std::uintptr_t>(ring_.ring().rx_data)) /
      ring_.ring().rx_stride_sz);
}

void graph_engine::arm(worker &w, std::uint32_t slot) {
  // The dispatcher has judged the header, but this reads it again: a requester that breaks the protocol may have
  // written another size. The CPU stage never gets a size that the slot does not hold.
  std::uint64_t words[3];
  for (std::size_t i = 0; i < 3; ++i)
    words[i] = load_frame<std::uint64_t>(ring_.rx_slot(slot) + 8 * i);
  cudaq_rpc_header_t header;
  static_assert(sizeof(header) == sizeof(words));
  std::memcpy(&header, words, sizeof(header));
  request_record &record = ring_.record(slot);
  record.payload_size = std::min(header.arg_len, static_cast<std::uint32_t>(ring_.max_payload()));
  // Otherwise the last answer's header could be taken for one that the CPU stage has written.
  if (with_cpu_stage_ && !ring_.in_place())
    std::memset(ring_.tx_slot(slot), 0, sizeof(cudaq_rpc_response_t));
  if (ring_.external()) {
    report_answered(w, w.launch.load()); // if no thread has reported yet that the last launch has failed
    record.request_id = header.request_id;
    w.slot.store(slot);
    w.request_id.store(header.request_id);
  }
  w.launch.start_at(w.launch.generation() + 1, launch_phase::begun);
}

// The launch has failed; or the device, after the launch. The fields are read before the claim: after it the
// dispatcher's thread may write those of the next launch.
void graph_engine::report_answered(worker &w, launch_word::snapshot seen) {
  const bool launched = seen.phase == launch_phase::launched;
  const answered_request queued{w.request_id.load(), w.slot.load(),
                                launched ? CUDAQ_RPC_ERR_DEVICE_FAULT : CUDAQ_RPC_ERR_LAUNCH_FAILED, cudaErrorUnknown};
  if (seen.phase != launch_phase::none && w.launch.claim(seen.generation, seen.phase, launch_phase::none))
    responder_.failed_launch(queued);
}

bool graph_engine::has_job(const worker &w, cudaq_host_job_t &job) const {
  return cudaq_host_worker_job(dispatcher_, w.id, &job) == CUDAQ_OK;
}

bool graph_engine::has_handed_over(int id) noexcept {
  return workers_[static_cast<std::size_t>(id)].handed.load() == worker::offer::made;
}

void graph_engine::launch_handed_over(int id) noexcept {
  worker &w = workers_[static_cast<std::size_t>(id)];
  w.handed.store(worker::offer::none);
  if (w.handed_fn(w.handed_data) == 0) // else the dispatcher answers the request
    count_launch(w);
}

bool graph_engine::take(int id, std::uint32_t &slot) {
  worker &w = workers_[static_cast<std::size_t>(id)];
  const launch_word::snapshot seen = w.launch.load();
  // A launch that fails on the own ring is left alone: the consumer finds the dispatcher's answer.
  if (seen.phase == launch_phase::none || (seen.phase == launch_phase::begun && !ring_.external()))
    return false;
  cudaq_host_job_t job{};
  if (!has_job(w, job)) {
    report_answered(w, seen);
    return false;
  }
  if (seen.phase == launch_phase::begun)
    return false;
  w.launch.enter(launch_phase::none);
  slot = job.slot;
  ring_.record(slot).state.start_at(job.generation, request_phase::held);
  return true;
}

stage_condition graph_engine::check_stage(int id, std::uint64_t generation) noexcept {
  cudaq_host_job_t job{};
  const bool open = has_job(workers_[static_cast<std::size_t>(id)], job) && job.generation == generation;
  return {open ? stage_condition::outcome::open : stage_condition::outcome::answered};
}

bool graph_engine::release(int id, stage_end stage) noexcept {
  worker &w = workers_[static_cast<std::size_t>(id)];
  w.kept = stage == stage_end::may_run;
  if (!w.kept)
    cudaq_host_release_worker(dispatcher_, id);
  return !w.kept;
}

} // namespace cudaq::qec::realtime::detail
