// SPDX-License-Identifier: Apache-2.0
// How a run of a host dispatcher ends: the intake closes, the accepted requests are answered, the threads are joined.
#include "lib/host_dispatcher/host_dispatcher.h"

namespace cudaq::realtime::detail {

void host_dispatcher::close_intake() {
  if (shared())
    setup_.router->begin_leaving(*this);
  intake_closed_.store(1);
  if (setup_.options.handler_pool_size == 0)
    while (serve_queued(counters_[kLoopCounters]) != 0) {
    }
  graphs_.drain(own_thread_, counters_[kLoopCounters]);
  store_relaxed(*setup_.stats, stats_value());
}

void host_dispatcher::leave_ring() {
  if (shared())
    setup_.router->remove(*this);
}

bool host_dispatcher::finish(steady_clock::time_point deadline) {
  const auto join_all = [this](steady_clock::time_point until) {
    bool joined = thread_.join_until(until);
    for (loop_thread &t : pool_)
      joined = joined && t.join_until(until);
    return joined;
  };
  threads_run_.store(1);
  if (!join_all(deadline)) {
    graphs_.give_up();
    if (in_handler())
      return false;
    // No handler is late. Threads may sleep for their block interval, or may be preempted: wait a little longer.
    const auto nap = std::chrono::nanoseconds(2 * setup_.options.block_interval_ns) + std::chrono::milliseconds(200);
    if (!join_all(steady_clock::now() + nap))
      return false;
  }
  threads_run_.store(0);
  // A running graph reads and writes its slot: its request is not answered before the graph has ended.
  if (!wait_until(deadline, [this] { return !graphs_.runs(); }))
    return false;
  graphs_.settle(counters_[kLoopCounters]);
  const auto idle = [this] { return !has_jobs(); };
  if (setup_.jobs && !wait_until(deadline, idle)) {
    give_up_deferred_jobs();
    // The remaining jobs are being published by the threads that completed them, which run no handlers.
    if (!wait_until(steady_clock::now() + std::chrono::seconds(1), idle))
      return false;
  }
  if (setup_.stats != nullptr)
    store_relaxed(*setup_.stats, stats_value());
  return true;
}

bool host_dispatcher::in_handler() const {
  for (std::uint32_t l = 0; l < counters_used_.peek(); ++l)
    if (counters_[l].busy.peek() != 0)
      return true;
  return false;
}

/// True if a job of this dispatcher is not answered, or its answer is not published yet.
bool host_dispatcher::has_jobs() const {
  const job_table &jobs = *setup_.jobs;
  for (std::uint32_t i = 0; i < jobs.num_slots; ++i) {
    const job_phase phase = jobs[i].state.phase();
    if (phase != job_phase::open && phase != job_phase::parked && jobs[i].owner.peek() == this)
      return true;
  }
  return false;
}

// Only deferred jobs can be open here: all threads that run handlers have ended.
void host_dispatcher::give_up_deferred_jobs() {
  job_table &jobs = *setup_.jobs;
  for (std::uint32_t i = 0; i < jobs.num_slots; ++i) {
    const job_record &record = jobs[i];
    const job_state::snapshot seen = record.state.look(); // read before the owner: a later job has another generation
    if (seen.phase != job_phase::deferred || record.owner.peek() != this)
      continue;
    if (record.marked && responder_.answered_elsewhere(jobs, i)) // tx is set, but the caller did not release the worker
      responder_.close_answered(jobs, {seen.generation, i, record.req.request_id}, counters_[kSharedCounters]);
    else
      responder_.complete(jobs, i, seen.generation, {true, CUDAQ_RPC_ERR_SHUTTING_DOWN, 0});
  }
}

} // namespace cudaq::realtime::detail
