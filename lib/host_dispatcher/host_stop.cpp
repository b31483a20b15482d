// SPDX-License-Identifier: Apache-2.0
// How a run of a host dispatcher ends: the intake closes, the accepted requests are answered, the threads are joined.
#include "lib/host_dispatcher/host_dispatcher.h"

namespace cudaq::realtime::detail {

void host_dispatcher::close_intake(rest of_the_queued) {
  const bool refuse = of_the_queued == rest::refused;
  thread_counters &here = counters_[kLoopCounters];
  if (shared())
    setup_.router->begin_leaving(*this);
  intake_closed_.store(1);
  if (setup_.options.handler_pool_size == 0)
    while ((refuse ? refuse_queued(here) : serve_queued(here)) != 0) {
    }
  if (refuse)
    graphs_.give_up();
  graphs_.drain(own_thread_, here);
  store_relaxed(*setup_.stats, stats_value());
}

/// Answers one request of the queues SHUTTING_DOWN. Returns its work count.
std::uint32_t host_dispatcher::refuse_queued(thread_counters &here) {
  work_queues::item item;
  if (!queues_.pop(0, item))
    return 0;
  responder_.publish(*setup_.jobs, item.slot, {true, CUDAQ_RPC_ERR_SHUTTING_DOWN, 0}, here);
  queues_.done(item);
  return 1;
}

/// A handler or a hook on the calling thread has called pthread_exit: the run ends. The first one is named.
void host_dispatcher::note_exit(thread_counters &here) {
  if (const std::uint64_t call = here.busy.peek()) {
    exited_in_.claim(0, (call >> 32) + 1);
    here.leave();
  }
  request_stop();
}

expected<> host_dispatcher::exit_reason() const {
  const std::uint64_t function = exited_in_.load();
  if (function == 0)
    return {};
  return make_reason(
      CUDAQ_ERR_INTERNAL,
      "the handler of function 0x%08x has ended its thread (pthread_exit or pthread_cancel), and so the run; "
      "a handler must return",
      static_cast<std::uint32_t>(function - 1));
}

// The dispatcher's threads end after their last publication. `responded` is read first: if the sums are equal then, no
// request was open when it was read.
bool host_dispatcher::ended() const {
  if (!loop_ended() || !thread_.ended())
    return false;
  for (const loop_thread &t : pool_)
    if (!t.ended())
      return false;
  std::uint64_t responded = 0, accepted = 0;
  for (std::uint32_t l = 0; l < counters_used_.peek(); ++l)
    responded += counters_[l].responded.value();
  for (std::uint32_t l = 0; l < counters_used_.peek(); ++l)
    accepted += counters_[l].dispatched.value() + counters_[l].refused.value();
  // A thread that completes a deferred job counts its answer before it publishes it, and closes the job after that.
  return responded == accepted && (tracks_jobs_.load() == 0 || jobs_opened_minus_closed() == jobs_base_.load());
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
    const bool sleeps = setup_.options.wait_policy == CUDAQ_WAIT_BLOCK;
    const std::uint64_t nap_ns = 200000000u + (sleeps ? 2 * setup_.options.block_interval_ns : 0);
    if (!join_all(deadline_after(nap_ns)))
      return false;
  }
  threads_run_.store(0);
  // A running graph reads and writes its slot: its request is not answered before the graph has ended.
  if (!wait_until(deadline, [this] { return !graphs_.runs(); }))
    return false;
  graphs_.settle(counters_[kLoopCounters]);
  // The loop's thread has ended, so this thread may send what is answered now.
  const auto idle = [this] {
    if (!has_dataplane())
      return !has_jobs();
    dataplane_.send(counters_[kLoopCounters]);
    return !dataplane_.holds_any();
  };
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

/// True if a job of this dispatcher is not answered, or its answer is not published yet. Counted, because a ring may
/// have many slots. Only after the intake is closed.
bool host_dispatcher::has_jobs() const {
  return tracks_jobs_.peek() != 0 && jobs_opened_minus_closed() != jobs_base_.load();
}

// Read in this order, the result is never too small while no job is opened. Requests of a run without job records are
// never closed: jobs_base_ holds them.
std::uint64_t host_dispatcher::jobs_opened_minus_closed() const {
  std::uint64_t closed = 0, opened = 0;
  for (std::uint32_t l = 0; l < counters_used_.peek(); ++l)
    closed += counters_[l].closed.value();
  for (std::uint32_t l = 0; l < counters_used_.peek(); ++l)
    opened += counters_[l].dispatched.value() + counters_[l].refused.value();
  return opened - closed;
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
