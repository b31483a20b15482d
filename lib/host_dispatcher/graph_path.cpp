// SPDX-License-Identifier: Apache-2.0
#include "lib/host_dispatcher/graph_path.h"

#include "lib/host_dispatcher/diagnostics.h"

#include <cinttypes>

namespace cudaq::realtime::detail {

void graph_path::reset(const std::vector<cudaq_host_worker_t> &workers, const function_index_view &index,
                       job_table &jobs, const cudaq_dispatcher_options_t &options,
                       std::shared_ptr<graph_launcher> launcher, shared_word<std::uint64_t> *idle_mask) {
  when_busy_ = static_cast<cudaq_busy_workers_t>(options.busy_workers);
  workers_.reset(workers, index, jobs, when_busy_, std::move(launcher), idle_mask);
  jobs_ = &jobs;
  grace_period_ns_ = options.grace_period_ns;
  idle_ = idle_strategy(static_cast<cudaq_wait_policy_t>(options.wait_policy), options.block_interval_ns);
  give_up_.store(0);
  fault_.store(0);
}

std::uint32_t graph_path::collect_ended(thread_counters &here) {
  return workers_.collect([&](std::uint32_t worker, const cudaq_host_job_t &job) { graph_ended(worker, job, here); });
}

std::uint32_t graph_path::turn(thread_counters &here) {
  std::uint32_t work = 0;
  if (workers_.handed_over())
    work += collect_handed_over(here);
  if (workers_.busy())
    work += collect_ended(here);
  if (workers_.failed() && steady_clock::now() >= next_failure_check_)
    work += answer_failed_launches(here);
  if (workers_.backlog()) {
    if (fault() != 0)
      fail_waiting(CUDAQ_RPC_ERR_DEVICE_FAULT, here);
    else if (give_up_.load() != 0)
      fail_waiting(CUDAQ_RPC_ERR_SHUTTING_DOWN, here);
    for (graph_workers::start next; fault() == 0 && workers_.next_start(next); ++work)
      launch(next, here);
  }
  if (work != 0)
    fault_watch_ = kNotWatching;
  else if (workers_.busy())
    watch_for_fault(here);
  return work;
}

// The order of docs/ring_protocol.md section 7: marker, launch, rx. A completion by another thread during the launch is
// stored in the job record, because the job is in phase running.
void graph_path::launch(const graph_workers::start &what, thread_counters &here) {
  const slot_ring &ring = jobs_->ring;
  job_record &record = (*jobs_)[what.slot];
  const std::uint64_t generation = record.state.generation();
  record.library_answers.set(workers_.spec(what.worker).completion != CUDAQ_WORKER_CALLER_PUBLISHES);
  record.state.enter(job_phase::running);
  if (workers_.spec(what.worker).completion == CUDAQ_WORKER_LIBRARY_PUBLISHES)
    expect_frame(ring, what.slot);
  if (responder_.markers())
    ring.mark_in_flight(what.slot);
  const std::uint64_t launch_number = workers_.begin(what.worker, {generation, what.slot, record.req.request_id});
  here.enter(what.slot, record.req.function_id); // the hooks are the caller's code
  launch_result result;
  graph_launcher &launcher = workers_.launcher();
  const auto is_handed_over = [&](std::uint32_t part) {
    return workers_.spec(what.worker).hand_over == part && should_hand_over(what.worker) &&
           workers_.hand_over(what.worker, what.slot);
  };
  bool handed = is_handed_over(CUDAQ_HAND_OVER_HOOK_AND_LAUNCH);
  if (!handed) {
    launcher.stage(what.worker, what.slot, result);
    handed = result.error == 0 && is_handed_over(CUDAQ_HAND_OVER_LAUNCH);
  }
  if (handed) {
    here.leave();
    return;
  }
  if (result.error == 0)
    launcher.launch(what.worker, what.slot, launch_number, result);
  here.leave();
  if (result.hook_threw)
    here.hook_failures.bump();
  launched(what.worker, what.slot, generation, result.error, here);
  if (result.error != 0)
    answer_failed_launches(here);
}

void graph_path::launched(std::uint32_t worker, std::uint32_t slot, std::uint64_t generation, int error,
                          thread_counters &here) {
  if (error != 0) {
    workers_.fail(worker, error);
    return;
  }
  here.launches.bump();
  if (responder_.markers()) {
    jobs_->ring.release_rx(slot);
    (*jobs_)[slot].marked = true;
  }
  responder_.handler_returned(*jobs_, slot, generation, {false}, here);
}

// The caller may have answered the request, and even released the worker, before this.
std::uint32_t graph_path::collect_handed_over(thread_counters &here) {
  return workers_.collect_handed_over(
      [&](std::uint32_t worker, const cudaq_host_job_t &job, const launch_result &result) {
        if (result.hook_threw)
          here.hook_failures.bump();
        if (fault() != 0)
          return; // fail_all has answered it
        launched(worker, job.slot, job.generation, result.error, here);
        next_failure_check_ = {};
      });
}

// Further requests wait in a queue, or the next one is in its slot already.
bool graph_path::should_hand_over(std::uint32_t worker) const {
  if (workers_.spec(worker).hand_over_fn == nullptr)
    return false;
  const std::uint32_t next = jobs_->cursor.peek();
  return backlog() || ((*jobs_)[next].state.phase() == job_phase::open && jobs_->ring.ready(next) != 0);
}

// Work that a hook has queued may read the slot, so the request is answered after that work has ended. Other requests
// must not wait for it, nor for many driver calls. Therefore idle() is called immediately after a failed launch, and
// then once per kPeriod.
std::uint32_t graph_path::answer_failed_launches(thread_counters &here) {
  constexpr std::chrono::microseconds kPeriod{50};
  int stuck = 0;
  const std::uint32_t count = workers_.collect_failed(
      [this](std::uint32_t worker) { return workers_.launcher().idle(worker); },
      [&](std::uint32_t worker, const cudaq_host_job_t &job, int error) {
        const int lost = workers_.launcher().recover(worker);
        answer_failed_launch(worker, job, error, lost != 0 ? CUDAQ_RPC_ERR_DEVICE_FAULT : CUDAQ_RPC_ERR_LAUNCH_FAILED,
                             here);
        stuck = lost != 0 ? lost : stuck;
      });
  if (stuck != 0)
    fail_all(stuck, here);
  if (workers_.failed())
    next_failure_check_ = steady_clock::now() + kPeriod;
  return count;
}

// Markers: the graph, or the caller, has set tx. Final after the end of the worker's work, or the loss of the device.
bool graph_path::answered_by_worker(std::uint32_t worker, const cudaq_host_job_t &job) const {
  return workers_.spec(worker).completion != CUDAQ_WORKER_LIBRARY_PUBLISHES &&
         responder_.answered_elsewhere(*jobs_, job.slot);
}

void graph_path::answer_failed_launch(std::uint32_t worker, const cudaq_host_job_t &job, int error, std::int32_t status,
                                      thread_counters &here) {
  job_record &record = (*jobs_)[job.slot];
  // A launch reports the loss of the device also if it came after the graph had run. The answer may be collected, too;
  // the slot is not refilled, because rx is still set.
  if (answered_by_worker(worker, job)) {
    responder_.handler_returned(*jobs_, job.slot, job.generation, {false}, here);
    responder_.close_answered(*jobs_, job, here);
    return;
  }
  const handler_result failed{true, status, 0};
  if (record.state.claim(job.generation, job_phase::running, job_phase::completing)) {
    record.cuda_error = static_cast<std::uint32_t>(error);
    record.taken_at = 0; // no graph has run: no time
    responder_.publish(*jobs_, job.slot, failed, here);
  } else {
    responder_.handler_returned(*jobs_, job.slot, job.generation, failed, here); // answered by another thread
  }
}

void graph_path::graph_ended(std::uint32_t worker, const cudaq_host_job_t &job, thread_counters &here) {
  job_table &jobs = *jobs_;
  const bool marker_is_set = responder_.markers() && !responder_.answered_elsewhere(*jobs_, job.slot);
  switch (workers_.spec(worker).completion) {
  case CUDAQ_WORKER_LIBRARY_PUBLISHES:
    responder_.complete(jobs, job.slot, job.generation, frame_answer(jobs.ring, job.slot));
    return;
  case CUDAQ_WORKER_GRAPH_PUBLISHES:
    if (marker_is_set) { // the graph has not published
      responder_.complete(jobs, job.slot, job.generation, {true, CUDAQ_RPC_ERR_NO_RESPONSE, 0});
      return;
    }
    break;
  default: // the caller released the worker: it has answered, will answer, or has set the tx flag
    if (marker_is_set || (!responder_.markers() && workers_.has_own_mask()))
      return;
  }
  responder_.close_answered(*jobs_, job, here);
}

void graph_path::fail_waiting(std::int32_t status, thread_counters &here) {
  for (std::uint32_t slot = 0; workers_.next_to_fail(slot);) {
    job_record &record = (*jobs_)[slot];
    record.taken_at = 0;
    if (status == CUDAQ_RPC_ERR_DEVICE_FAULT) {
      record.cuda_error = static_cast<std::uint32_t>(fault());
      if (responder_.markers())
        jobs_->ring.mark_in_flight(slot); // the sentinel may only replace IN_FLIGHT
    }
    responder_.publish(*jobs_, slot, {true, status, 0}, here);
  }
}

void graph_path::watch_for_fault(thread_counters &here) {
  constexpr std::chrono::milliseconds kPeriod{10};
  const steady_clock::time_point now = steady_clock::now();
  const bool begins = fault_watch_ == kNotWatching; // no driver call while graphs end regularly
  if (!begins && now < fault_watch_)
    return;
  fault_watch_ = now + kPeriod;
  if (begins)
    return;
  if (const int stuck = workers_.launcher().fault())
    fail_all(stuck, here);
}

// A fault concerns the whole context: no graph of any worker will run again. A worker that the caller released is not
// abandoned: its caller has the result and answers the job.
void graph_path::fail_all(int error, thread_counters &here) {
  collect_handed_over(here);
  collect_ended(here);
  fault_.store(error);
  workers_.collect_failed([](std::uint32_t) { return true; },
                          [&](std::uint32_t worker, const cudaq_host_job_t &job, int) {
                            answer_failed_launch(worker, job, error, CUDAQ_RPC_ERR_DEVICE_FAULT, here);
                          });
  workers_.abandon([&](std::uint32_t worker, const cudaq_host_job_t &job) {
    if (workers_.handed_over(worker)) { // its launch will fail, or has come before the fault
      answer_failed_launch(worker, job, error, CUDAQ_RPC_ERR_DEVICE_FAULT, here);
      return;
    }
    if (answered_by_worker(worker, job)) {
      responder_.close_answered(*jobs_, job, here);
      return;
    }
    job_record &record = (*jobs_)[job.slot];
    if (!record.state.claim(job.generation, job_phase::deferred, job_phase::completing))
      return; // the caller has answered it
    record.cuda_error = static_cast<std::uint32_t>(error);
    responder_.publish(*jobs_, job.slot, {true, CUDAQ_RPC_ERR_DEVICE_FAULT, 0}, here);
  });
}

// A worker that the caller frees is waited for until the end of the grace period: its answer may come until then.
void graph_path::drain(bool own_thread, thread_counters &here) {
  if (none())
    return;
  const steady_clock::time_point deadline = deadline_after(grace_period_ns_);
  run_loop(
      [&] {
        const std::uint32_t work = turn(here);
        if (!own_thread && work == 0 && give_up_.load() == 0 && steady_clock::now() >= deadline)
          give_up_.store(1);
        return work;
      },
      [&] {
        const bool late = give_up_.load() != 0;
        return !backlog() && !workers_.handed_over() && (!workers_.held_by_caller() || late) &&
               (!workers_.running() || (late && !own_thread));
      },
      idle_);
}

void graph_path::collect_after_end(thread_counters &here) {
  if (none() || !workers_.busy() || fault() != 0)
    return;
  collect_ended(here);
  answer_failed_launches(here);
  if (const int stuck = workers_.launcher().fault())
    fail_all(stuck, here);
}

bool graph_path::runs() const {
  for (std::uint32_t w = 0; fault() == 0 && w < workers_.size(); ++w)
    if (!workers_.launcher().idle(w))
      return true;
  return false;
}

expected<> graph_path::check_restart() const {
  const std::uint64_t kept = workers_.kept_by_caller();
  if (kept == 0)
    return {};
  return make_reason(
      CUDAQ_ERR_STATE,
      "graph worker %d is held by the caller since the last run: release it with cudaq_host_release_worker first",
      std::countr_zero(kept));
}

expected<> graph_path::check_worker(int worker) const {
  if (worker < 0 || static_cast<std::uint32_t>(worker) >= workers_.size())
    return make_reason(CUDAQ_ERR_INVALID_ARG, "worker_id is %d; the dispatcher has %u graph workers, numbered from 0",
                       worker, workers_.size());
  return {};
}

expected<> graph_path::release_worker(int worker) {
  if (expected<> result = check_worker(worker); result.failed())
    return result;
  const auto w = static_cast<std::uint32_t>(worker);
  if (workers_.spec(w).completion != CUDAQ_WORKER_CALLER_PUBLISHES)
    return make_reason(CUDAQ_ERR_STATE, "worker %d: its completion is not CALLER_PUBLISHES, so the library frees it",
                       worker);
  if (!workers_.release(w))
    return make_reason(CUDAQ_ERR_STATE, "worker %d is idle: it was released already, or has no job", worker);
  return {};
}

expected<> graph_path::worker_job(int worker, cudaq_host_job_t &out) const {
  if (expected<> result = check_worker(worker); result.failed())
    return result;
  if (!workers_.read_job(static_cast<std::uint32_t>(worker), out))
    return make_reason(CUDAQ_ERR_STATE, "worker %d is idle: it has no job", worker);
  return {};
}

std::string graph_path::describe() const {
  std::string text;
  for (std::uint32_t w = 0; w < workers_.size(); ++w) {
    const cudaq_host_worker_t &spec = workers_.spec(w);
    append(text, "graph worker %u: function 0x%08x, routing key %" PRIu64 ", %s", w, spec.function_id, spec.routing_key,
           workers_.launcher().on_blocking_stream(w) ? "blocking stream (waits for the legacy stream), " : "");
    cudaq_host_job_t job{};
    if (workers_.read_job(w, job))
      append(text, "slot %u, generation %" PRIu64 ", request %u\n", job.slot, job.generation, job.request_id);
    else
      text += "idle\n";
  }
  return text;
}

} // namespace cudaq::realtime::detail
