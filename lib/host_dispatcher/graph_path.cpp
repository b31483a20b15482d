// SPDX-License-Identifier: Apache-2.0
// The graph handlers of a host dispatcher. Everything but release_worker, worker_job and the text runs on its own thread.
#include "lib/host_dispatcher/diagnostics.h"
#include "lib/host_dispatcher/host_dispatcher.h"

#include <cinttypes>

namespace cudaq::realtime::detail {

std::uint32_t host_dispatcher::collect_graphs(thread_counters &here) {
  return graphs_.collect([&](std::uint32_t worker, const cudaq_host_job_t &job) { graph_ended(worker, job, here); });
}

std::uint32_t host_dispatcher::graph_turn(thread_counters &here) {
  std::uint32_t work = 0;
  if (graphs_.busy())
    work += collect_graphs(here);
  if (graphs_.failed() && steady_clock::now() >= ask_failed_)
    work += answer_failed_launches(here);
  if (graphs_.backlog()) {
    if (fault() != 0)
      fail_waiting(CUDAQ_RPC_ERR_DEVICE_FAULT, here);
    else if (give_up_.load() != 0)
      fail_waiting(CUDAQ_RPC_ERR_SHUTTING_DOWN, here);
    for (graph_workers::start next; fault() == 0 && graphs_.next_start(*setup_.jobs, next); ++work)
      launch(next, here);
  }
  if (work != 0)
    fault_watch_ = kNotWatching;
  else if (graphs_.busy())
    watch_for_fault(here);
  return work;
}

// docs/ring_protocol.md section 4: marker, launch, rx. A completion by another thread during the launch is kept, since the
// job is in phase running.
void host_dispatcher::launch(const graph_workers::start &what, thread_counters &here) {
  const slot_ring &ring = setup_.jobs->ring;
  job_record &record = (*setup_.jobs)[what.slot];
  const std::uint64_t generation = record.state.generation();
  record.library_answers.set(graphs_.spec(what.worker).completion != CUDAQ_WORKER_CALLER_PUBLISHES);
  record.state.enter(job_phase::running);
  if (graphs_.spec(what.worker).completion == CUDAQ_WORKER_LIBRARY_PUBLISHES)
    expect_frame(ring, what.slot);
  if (setup_.markers)
    ring.mark_in_flight(what.slot);
  const std::uint64_t launch_number = graphs_.begin(what.worker, {generation, what.slot, record.req.request_id});
  here.enter(what.slot, record.req.function_id); // the hooks are the caller's code
  const launch_result said = graphs_.launcher().launch(what.worker, what.slot, launch_number);
  here.leave();
  if (said.hook_threw)
    here.hook_failures.bump();
  if (said.error == 0) {
    here.launches.bump();
    if (setup_.markers) {
      ring.release_rx(what.slot);
      record.marked = true;
    }
    handler_returned(what.slot, generation, {false}, here);
    return;
  }
  graphs_.fail(what.worker, said.error);
  answer_failed_launches(here);
}

// What a hook has queued may read the slot, so the request is answered when that is over. Others need not wait for it, nor
// for many questions to the driver: at once it is asked about a launch that has just failed, and now and then later.
std::uint32_t host_dispatcher::answer_failed_launches(thread_counters &here) {
  constexpr std::chrono::microseconds kPeriod{50};
  int stuck = 0;
  const std::uint32_t count = graphs_.collect_failed(
      [this](std::uint32_t worker) { return graphs_.launcher().idle(worker); },
      [&](std::uint32_t worker, const cudaq_host_job_t &job, int error) {
        const int lost = graphs_.launcher().recover(worker);
        answer_failed_launch(job, error, lost != 0 ? CUDAQ_RPC_ERR_DEVICE_FAULT : CUDAQ_RPC_ERR_LAUNCH_FAILED, here);
        stuck = lost != 0 ? lost : stuck;
      });
  if (stuck != 0)
    fail_all_graphs(stuck, here);
  if (graphs_.failed())
    ask_failed_ = steady_clock::now() + kPeriod;
  return count;
}

void host_dispatcher::answer_failed_launch(const cudaq_host_job_t &job, int error, std::int32_t status,
                                           thread_counters &here) {
  job_record &record = (*setup_.jobs)[job.slot];
  const handler_result failed{true, status, 0};
  if (record.state.claim(job.generation, job_phase::running, job_phase::completing)) {
    record.cuda_error = static_cast<std::uint32_t>(error);
    publish(*setup_.jobs, job.slot, failed, here);
  } else {
    handler_returned(job.slot, job.generation, failed, here); // somebody has answered it already
  }
}

void host_dispatcher::graph_ended(std::uint32_t worker, const cudaq_host_job_t &job, thread_counters &here) {
  job_table &jobs = *setup_.jobs;
  const bool marker_stands = setup_.markers && !answered_elsewhere(job);
  switch (graphs_.spec(worker).completion) {
  case CUDAQ_WORKER_LIBRARY_PUBLISHES:
    complete(jobs, job.slot, job.generation, frame_answer(jobs.ring, job.slot));
    return;
  case CUDAQ_WORKER_GRAPH_PUBLISHES:
    if (marker_stands) { // it did not
      complete(jobs, job.slot, job.generation, {true, CUDAQ_RPC_ERR_NO_RESPONSE, 0});
      return;
    }
    break;
  default: // the caller gave the worker back: he has answered already, or will, or has raised the tx flag himself
    if (!setup_.markers || marker_stands)
      return;
  }
  close_answered(job, here);
}

/// Somebody else has raised the tx flag of a job that was launched. Nobody can tell without markers.
bool host_dispatcher::answered_elsewhere(const cudaq_host_job_t &job) const {
  return setup_.markers && setup_.jobs->ring.answer(job.slot) != CUDAQ_TX_FLAG_IN_FLIGHT;
}

// The frame may be collected already, so nothing is known of its status.
void host_dispatcher::close_answered(const cudaq_host_job_t &job, thread_counters &here) {
  job_table &jobs = *setup_.jobs;
  if (!jobs[job.slot].state.claim(job.generation, job_phase::deferred, job_phase::completing))
    return;
  here.count_response(CUDAQ_RPC_OK);
  end_job(jobs, job.slot);
}

void host_dispatcher::fail_waiting(std::int32_t status, thread_counters &here) {
  for (std::uint32_t slot = 0; graphs_.next_to_fail(slot);) {
    job_record &record = (*setup_.jobs)[slot];
    if (status == CUDAQ_RPC_ERR_DEVICE_FAULT) {
      record.cuda_error = static_cast<std::uint32_t>(fault());
      if (setup_.markers)
        setup_.jobs->ring.mark_in_flight(slot); // the sentinel replaces nothing else
    }
    publish(*setup_.jobs, slot, {true, status, 0}, here);
  }
}

void host_dispatcher::watch_for_fault(thread_counters &here) {
  constexpr std::chrono::milliseconds kPeriod{10};
  const steady_clock::time_point now = steady_clock::now();
  const bool begins = fault_watch_ == kNotWatching; // graphs that come to their ends are not asked about
  if (!begins && now < fault_watch_)
    return;
  fault_watch_ = now + kPeriod;
  if (begins)
    return;
  if (const int stuck = graphs_.launcher().fault())
    fail_all_graphs(stuck, here);
}

// A fault is the context's: no graph of any worker will run again. A job whose worker was given back is with the caller,
// who has its result.
void host_dispatcher::fail_all_graphs(int error, thread_counters &here) {
  collect_graphs(here);
  fault_.store(error);
  graphs_.collect_failed([](std::uint32_t) { return true; },
                         [&](std::uint32_t, const cudaq_host_job_t &job, int) {
                           answer_failed_launch(job, error, CUDAQ_RPC_ERR_DEVICE_FAULT, here);
                         });
  graphs_.abandon([&](std::uint32_t worker, const cudaq_host_job_t &job) {
    const bool by_library = graphs_.spec(worker).completion == CUDAQ_WORKER_LIBRARY_PUBLISHES;
    if (!by_library && answered_elsewhere(job)) {
      close_answered(job, here);
      return;
    }
    job_record &record = (*setup_.jobs)[job.slot];
    if (!record.state.claim(job.generation, job_phase::deferred, job_phase::completing))
      return; // the caller has answered it
    record.cuda_error = static_cast<std::uint32_t>(error);
    publish(*setup_.jobs, job.slot, {true, CUDAQ_RPC_ERR_DEVICE_FAULT, 0}, here);
  });
}

// A worker of the caller's is waited for until the grace period is over: only then is it known that nobody answers.
//
// A dispatcher's own thread goes on until what runs has ended: stop says when it is late, and may be called again. A
// thread of the caller's goes home behind the grace period.
void host_dispatcher::drain_graphs() {
  if (graphs_.none())
    return;
  const steady_clock::time_point begin = steady_clock::now();
  const std::chrono::nanoseconds grace{std::min<std::uint64_t>(setup_.options.grace_period_ns, INT64_MAX)};
  run_loop(
      [this, begin, grace] {
        const std::uint32_t work = graph_turn(counters_[kLoopCounters]);
        if (!own_thread_ && work == 0 && give_up_.load() == 0 && steady_clock::now() - begin >= grace)
          give_up_.store(1);
        return work;
      },
      [this] {
        const bool late = give_up_.load() != 0;
        return !graphs_.backlog() && (!graphs_.lent() || late) && (!graphs_.running() || (late && !own_thread_));
      },
      idle_strategy(static_cast<cudaq_wait_policy_t>(setup_.options.wait_policy), setup_.options.block_interval_ns));
}

// The loop has ended, so this is the only thread that sees to the workers now.
void host_dispatcher::settle_graphs() {
  if (graphs_.none() || !graphs_.busy() || fault() != 0)
    return;
  thread_counters &here = counters_[kLoopCounters];
  collect_graphs(here);
  answer_failed_launches(here);
  if (const int stuck = graphs_.launcher().fault())
    fail_all_graphs(stuck, here);
}

status_or_reason host_dispatcher::check_restart() const {
  const std::uint64_t kept = graphs_.kept_by_caller();
  if (kept == 0)
    return {};
  return make_reason(CUDAQ_ERR_STATE,
                     "graph worker %d is lent since the last run: give it back with cudaq_host_release_worker first",
                     std::countr_zero(kept));
}

status_or_reason host_dispatcher::release_worker(int worker) {
  if (worker < 0 || static_cast<std::uint32_t>(worker) >= graphs_.size())
    return make_reason(CUDAQ_ERR_INVALID_ARG, "worker_id is %d, the dispatcher has %u graph workers", worker,
                       graphs_.size());
  const auto w = static_cast<std::uint32_t>(worker);
  if (graphs_.spec(w).completion != CUDAQ_WORKER_CALLER_PUBLISHES)
    return make_reason(CUDAQ_ERR_STATE, "worker %d is freed by the library: its completion is not CALLER_PUBLISHES",
                       worker);
  if (!graphs_.release(w))
    return make_reason(CUDAQ_ERR_STATE, "worker %d is idle", worker);
  return {};
}

status_or_reason host_dispatcher::worker_job(int worker, cudaq_host_job_t &out) const {
  if (worker < 0 || static_cast<std::uint32_t>(worker) >= graphs_.size())
    return make_reason(CUDAQ_ERR_INVALID_ARG, "worker_id is %d, the dispatcher has %u graph workers", worker,
                       graphs_.size());
  if (!graphs_.read_job(static_cast<std::uint32_t>(worker), out))
    return make_reason(CUDAQ_ERR_STATE, "worker %d is idle", worker);
  return {};
}

std::string host_dispatcher::describe_workers() const {
  std::string text;
  for (std::uint32_t w = 0; w < graphs_.size(); ++w) {
    const cudaq_host_worker_t &spec = graphs_.spec(w);
    append(text, "graph worker %u: function 0x%08x, routing key %" PRIu64 ", ", w, spec.function_id, spec.routing_key);
    cudaq_host_job_t job{};
    if (graphs_.read_job(w, job))
      append(text, "slot %u, generation %" PRIu64 ", request %u\n", job.slot, job.generation, job.request_id);
    else
      text += "idle\n";
  }
  return text;
}

} // namespace cudaq::realtime::detail
