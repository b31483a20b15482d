// SPDX-License-Identifier: Apache-2.0
// Stop: close, drain, stop the dispatcher, end the threads, report requests that are left. docs/pipeline.md has the
// order and the reasons.
#include "lib/qec/pipeline/pipeline_core.h"
#include "lib/qec/pipeline/pipeline_thread.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace cudaq::qec::realtime::detail {

using cudaq::realtime::detail::deadline_after;
using cudaq::realtime::detail::steady_clock;
using cudaq::realtime::detail::store_release;
using cudaq::realtime::detail::wait_until;
using experimental::stop_report;

namespace {

/// After the grace period: the time for a thread to return from a callback, and for the dispatcher to answer the rest.
constexpr auto kEndTime = std::chrono::milliseconds(500);

unsigned long long count(std::uint64_t n) { return n; } // for printf formats

bool is_open(request_phase phase) { return phase == request_phase::held || phase == request_phase::completable; }

const char *text_of(stage_worker::activity what) {
  switch (what) {
  case stage_worker::activity::idle:
    return "idle";
  case stage_worker::activity::launch:
    return "in the launch of its graph";
  case stage_worker::activity::gpu_stage:
    return "in the GPU stage";
  case stage_worker::activity::waiting:
    return "waiting for the GPU stage";
  case stage_worker::activity::cpu_stage:
    return "in the CPU stage";
  }
  return "";
}

} // namespace

void pipeline_core::refuse_from_callback(const char *call) const {
  if (pipeline_thread::is_of(this))
    throw std::logic_error(std::string("pipeline: ") + call +
                           ": called from a callback of the same pipeline; call it from another thread");
}

void pipeline_core::set_state(const stop_findings &found, run_state state) {
  const std::lock_guard<std::mutex> lock(shape_);
  last_stop_ = found;
  state_ = state;
}

stop_report pipeline_core::last_stop() const {
  const std::lock_guard<std::mutex> lock(shape_);
  return {last_stop_.text.empty(), last_stop_.given_up, last_stop_.left_over, last_stop_.stuck_threads,
          last_stop_.text.c_str()};
}

bool pipeline_core::ended() const {
  const std::lock_guard<std::mutex> lock(shape_);
  return state_ == run_state::created || state_ == run_state::stopped;
}

bool pipeline_core::is_stuck() const {
  const std::lock_guard<std::mutex> lock(shape_);
  return state_ == run_state::stuck;
}

void pipeline_core::stop() {
  const cudaq::realtime::detail::cancellation_disabled during_the_call;
  refuse_from_callback("stop");
  const std::lock_guard<std::mutex> one(control_);
  ring_.close(); // first: a submit may wait for a slot, even if the pipeline never ran
  if (ended())
    return;
  stop_findings found;
  const std::uint64_t given_up_before = completions_.given_up();
  const auto deadline = deadline_after(config_.grace_period_ns);
  const bool again = is_stuck(); // an earlier stop used the grace period and ended the workers
  bool drained = false;
  if (ring_.external()) { // its producer goes on, so the dispatcher must take no more requests
    store_release(shutdown_, 1);
    drained = !again && run_ends(deadline);
  } else {
    drained = !again && drain(deadline);
  }
  if (!drained) {
    responder_.give_up.store(1);
    store_release(shutdown_, 1);
    // Before the dispatcher answers them: else a worker could call the CPU stage for a request that is answered.
    wait_until(steady_clock::now() + kEndTime, [this] { return !has_open_requests(); });
    give_up_requests();
  }
  const bool stopped = stop_dispatcher(static_cast<std::uint64_t>(std::chrono::nanoseconds(kEndTime).count()), found);
  responder_.give_up.store(1);
  if (stopped)
    give_up_requests();
  found.stuck_threads = join_workers(steady_clock::now() + kEndTime, stopped, found);
  if (stopped) {
    if (answers_are_queued(found))
      end_consumer(found);
  } else { // the dispatcher may still answer and call the hooks; the next stop tries again
    ++found.stuck_threads;
  }
  found.given_up = completions_.given_up() - given_up_before;
  found.left_over = ring_.external() ? 0 : ring_.drawn() - completions_.completed();
  if (found.given_up != 0)
    found.text.add("%llu requests answered SHUTTING_DOWN", count(found.given_up));
  if (found.left_over != 0)
    found.text.add("%llu requests left in the ring", count(found.left_over));
  if (const std::uint64_t lost = completions_.lost(); lost != lost_reported_) {
    found.text.add("%llu completions not delivered", count(lost - lost_reported_));
    lost_reported_ = lost;
  }
  if (found.stuck_threads == 0)
    end_stages(found);
  const bool ended = found.stuck_threads == 0;
  if (ended) {
    engine_->unwire(dispatcher_);
    {
      const std::lock_guard<std::mutex> lock(shape_);
      workers_.clear();
    }
    engine_.reset();
  }
  set_state(found, ended ? run_state::stopped : run_state::stuck);
}

/// False: a request was still open at the deadline.
bool pipeline_core::drain(time_point deadline) {
  const std::uint64_t drawn = ring_.drawn();
  return wait_until(deadline, [&] { return completions_.completed() == drawn; });
}

/// Waits, after shutdown_ is set, until the dispatcher has no request any more. False: it has one at the deadline.
bool pipeline_core::run_ends(time_point deadline) {
  return wait_until(deadline, [this] {
    cudaq_dispatcher_state_t now = CUDAQ_DISPATCHER_RUNNING;
    (void)cudaq_dispatcher_get_state(dispatcher_, &now);
    return now == CUDAQ_DISPATCHER_STOPPED || (now == CUDAQ_DISPATCHER_FAILED && !has_open_requests());
  });
}

/// False: the dispatcher, or a graph, has not ended.
bool pipeline_core::stop_dispatcher(std::uint64_t timeout_ns, stop_findings &found) {
  const cudaq_status_t status = cudaq_dispatcher_stop_timeout(dispatcher_, timeout_ns);
  if (status != CUDAQ_OK)
    found.text.add("dispatcher: %s", cudaq_last_error_message());
  if (status == CUDAQ_OK || status == CUDAQ_ERR_TIMEOUT)
    return status == CUDAQ_OK;
  cudaq_dispatcher_state_t now = CUDAQ_DISPATCHER_STOPPING;
  (void)cudaq_dispatcher_get_state(dispatcher_, &now);
  if (now == CUDAQ_DISPATCHER_RUNNING || now == CUDAQ_DISPATCHER_STOPPING)
    return false;
  return cudaq_dispatcher_stop_timeout(dispatcher_, timeout_ns) == CUDAQ_OK; // the error of a run is returned once
}

/// Returns the number of workers that did not end.
int pipeline_core::join_workers(time_point deadline, bool dispatcher_stopped, stop_findings &found) {
  workers_end_.store(1);
  int stuck = 0;
  for (worker_thread &w : workers_) {
    if (w.thread.join_until(deadline)) {
      if (dispatcher_stopped)
        engine_->report_late_launch(w.buffers.front()->id());
      continue;
    }
    ++stuck;
    const stage_worker &in = w.busiest();
    found.text.add("worker %d is stuck %s, slot %u", in.id(), text_of(in.doing()), in.slot());
  }
  return stuck;
}

/// A thread that has claimed a request has still to answer it, or to notify the consumer that it was too late: a
/// complete_deferred, or a worker that did not end in time. False: the consumer must stay for these threads.
bool pipeline_core::answers_are_queued(stop_findings &found) {
  const auto by_workers = [this] {
    return std::all_of(workers_.begin(), workers_.end(), [](const worker_thread &w) {
      return std::all_of(w.buffers.begin(), w.buffers.end(), [](const auto &b) { return b->in_flight().none(); });
    });
  };
  if (wait_until(steady_clock::now() + kEndTime, [&] { return completers_.none() && by_workers(); }))
    return true;
  if (!completers_.none()) { // join_workers has reported a stuck worker already
    ++found.stuck_threads;
    found.text.add("a call of complete_deferred has not returned");
  }
  return false;
}

void pipeline_core::end_consumer(stop_findings &found) {
  consumer_ends_.store(1);
  if (consumer_.join_until(steady_clock::now() + kEndTime))
    return;
  ++found.stuck_threads;
  found.text.add("%s",
                 completions_.in_handler() ? "the completion handler has not returned" : "the consumer has not ended");
}

void pipeline_core::end_stages(stop_findings &found) {
  const pipeline_thread inside(this); // the stages' hooks are the caller's code
  const int running = engine_->end_stages();
  if (running == 0)
    return;
  found.stuck_threads += running;
  found.text.add("the GPU stages of %d workers have not ended", running);
}

bool pipeline_core::has_open_requests() const {
  for (std::uint32_t slot = 0; slot < ring_.num_slots(); ++slot)
    if (is_open(ring_.record(slot).state.phase()))
      return true;
  return false;
}

/// After give_up is 1. Answers all open requests; if the dispatcher has answered one, this only queues its completion.
/// A request that the dispatcher accepts later leads to no stage: its worker finds give_up.
void pipeline_core::give_up_requests() {
  while (engine_->drop_queued())
    responder_.taken();
  for (std::uint32_t slot = 0; slot < ring_.num_slots(); ++slot) {
    request_state &state = ring_.record(slot).state;
    for (request_state::snapshot seen = state.load(); is_open(seen.phase); seen = state.load()) {
      const bool held = seen.phase == request_phase::held;
      if (!state.claim(seen.generation, seen.phase, held ? request_phase::none : request_phase::given_up))
        continue; // another thread has just moved it on
      responder_.complete(slot, seen.generation, {CUDAQ_RPC_ERR_SHUTTING_DOWN, 0});
      break;
    }
  }
}

std::string pipeline_core::dump() const {
  std::ostringstream out;
  {
    const std::lock_guard<std::mutex> lock(shape_);
    static constexpr const char *kStates[] = {"created", "starting", "running", "stopped", "stuck"};
    // What comes last is read first: so no part is more than the whole.
    const std::uint64_t given_up = completions_.given_up(), completed = completions_.completed();
    out << "pipeline: " << kStates[static_cast<int>(state_)] << "; " << ring_.submitted() << " submitted, " << completed
        << " completed, " << given_up << " given up\n";
    if (!last_stop_.text.empty())
      out << "last stop: " << last_stop_.text.c_str() << "\n";
    for (const worker_thread &w : workers_)
      for (const auto &buffer : w.buffers) {
        const stage_worker::activity what = buffer->doing();
        out << "worker " << buffer->id() << ": " << text_of(what);
        if (what != stage_worker::activity::idle && what != stage_worker::activity::launch)
          out << ", slot " << buffer->slot();
        out << "\n";
      }
  }
  out << "errors: " << responder_.stage_errors.value() << " GPU stage, " << responder_.callback_errors.value()
      << " CPU stage, " << completions_.handler_errors() << " completion handler, " << responder_.answered_twice.value()
      << " second answers\n";
  if (const std::string first = responder_.first_note(); !first.empty())
    out << "first error text: " << first << "\n";
  for (std::uint32_t slot = 0; slot < ring_.num_slots(); ++slot) {
    static constexpr const char *kPhases[] = {"", "queued or with a worker", "in its CPU stage or deferred", ""};
    const auto phase = static_cast<std::size_t>(ring_.record(slot).state.phase());
    if (*kPhases[phase] != '\0')
      out << "slot " << slot << ": " << kPhases[phase] << "\n";
  }
  std::string text(16384, '\0');
  std::size_t length = 0;
  cudaq_dispatcher_dump_state(dispatcher_, text.data(), text.size(), &length);
  text.resize(std::min(length, text.size() - 1));
  return out.str() + text;
}

} // namespace cudaq::qec::realtime::detail
