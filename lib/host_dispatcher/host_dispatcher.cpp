// SPDX-License-Identifier: Apache-2.0
#include "lib/host_dispatcher/host_dispatcher.h"

namespace cudaq::realtime::detail {
namespace {
/// The dispatcher whose handlers the calling thread runs.
thread_local const host_dispatcher *serving_for = nullptr;

/// Sets serving_for for its lifetime.
class serving_scope {
public:
  explicit serving_scope(const host_dispatcher *dispatcher) : outer_(serving_for) { serving_for = dispatcher; }
  ~serving_scope() { serving_for = outer_; }
  serving_scope(const serving_scope &) = delete;
  serving_scope &operator=(const serving_scope &) = delete;

private:
  const host_dispatcher *outer_;
};
} // namespace

std::vector<thread_counters> host_dispatcher::make_counters() {
  std::vector<thread_counters> all;
  all.reserve(kFirstPoolCounters + kMaxPoolThreads);
  all.emplace_back(true);
  while (all.size() < kFirstPoolCounters + kMaxPoolThreads)
    all.emplace_back(false);
  return all;
}

expected<> host_dispatcher::prepare(host_setup setup) {
  const cudaq_dispatcher_options_t &o = setup.options;
  judge_rules rules;
  rules.served_modes = 1u << CUDAQ_DISPATCH_HOST_CALL;
  if (!setup.workers.empty())
    rules.served_modes |= 1u << CUDAQ_DISPATCH_GRAPH_LAUNCH;
  rules.answer_unknown = o.unknown_function == CUDAQ_UNKNOWN_FUNCTION_ANSWER;
  rules.check_schema = o.check_schema != 0;
  rules.strict_flag_values = o.strict_flag_values != 0;
  const slot_ring &ring = setup.jobs->ring;
  const std::uint32_t max_result_len =
      setup.max_result_bytes == 0 ? ring.max_payload() : std::min(ring.max_payload(), setup.max_result_bytes);
  if (expected<> result = handlers_.prepare(setup.table, setup.v2, setup.workers, rules, max_result_len);
      result.failed())
    return result;
  graphs_.reset(setup.workers, handlers_.index(), *setup.jobs, o, setup.launcher, setup.idle_mask);
  responder_.prepare(setup.markers);
  const std::uint32_t counters_now = kFirstPoolCounters + o.handler_pool_size;
  times_.prepare(setup.handler_times, handlers_.index(), counters_, counters_now);
  const bool pool = o.handler_pool_size != 0;
  const poppers who = !pool ? poppers::one : o.ordering == CUDAQ_ORDERING_FIFO ? poppers::one_per_queue : poppers::any;
  // One queue more than routes: for requests of a shared ring that are answered without a handler.
  queues_.reset(who == poppers::one_per_queue ? handlers_.index().num_routes + 1 : 1, *setup.jobs, who);
  const bool copies = ring.in_place() && o.payload_in_slot == 0;
  const std::size_t scratch_words = copies ? (ring.slot_size + 7) / 8 : 0;
  for (std::uint32_t l = 0; l < counters_now; ++l)
    counters_[l].scratch.assign(scratch_words, 0);
  if (counters_now > counters_used_.peek())
    counters_used_.set(counters_now);
  queued_ = pool || setup.shared_ring;
  tracks_jobs_.store(queued_ || handlers_.may_defer() ? 1 : 0);
  max_result_len_.set(max_result_len);
  if (setup_.jobs != setup.jobs) // the last reference to the table of an earlier run may go
    release_ring();
  if (setup.dataplane)
    dataplane_.prepare(*setup.dataplane, *setup.jobs);
  jobs_.set(setup.jobs.get(), !setup.shared_ring);
  setup_ = std::move(setup);
  stats_base_.set(load_relaxed(*setup_.stats) - processed());
  jobs_base_.store(jobs_opened_minus_closed());
  stop_.store(0);
  intake_closed_.store(0);
  polls_ = 0;
  empty_turns_ = 1; // 0 would mean that a request was just served
  busy_slot_ = collected_slot_ = timed_route_ = function_index_view::kNone;
  return {};
}

// The ring is joined last: from then on requests are accepted, and the threads that serve them must exist.
expected<> host_dispatcher::start(bool with_thread) {
  gate_.store(gate::closed);
  own_thread_ = with_thread;
  expected<> result;
  try {
    result = start_threads(with_thread);
    if (result.ok() && shared())
      result = setup_.router->attach(*this);
  } catch (...) {
    abandon_start();
    throw;
  }
  if (result.failed())
    abandon_start();
  else
    gate_.store(gate::open);
  return result;
}

expected<> host_dispatcher::start_threads(bool with_thread) {
  const cudaq_dispatcher_options_t &o = setup_.options;
  for (std::uint32_t p = 0; p < o.handler_pool_size; ++p) {
    const int core = o.handler_core_base == CUDAQ_CORE_ANY ? CUDAQ_CORE_ANY : o.handler_core_base + static_cast<int>(p);
    if (expected<> result = pool_[p].start("cudaq-pool-" + std::to_string(p), placement(core),
                                           [this, p] {
                                             wait_for_go();
                                             serve_pool(counters_[kFirstPoolCounters + p]);
                                           });
        result.failed())
      return result;
  }
  if (!with_thread)
    return {};
  return thread_.start("cudaq-dispatch", placement(o.dispatcher_core), [this] {
    wait_for_go();
    if (gate_.load() == gate::open)
      loop();
  });
}

void host_dispatcher::serve_pool(thread_counters &here) {
  const serving_scope mark(this);
  const idle_strategy idle(static_cast<cudaq_wait_policy_t>(setup_.options.wait_policy),
                           setup_.options.block_interval_ns);
  const auto ended = [this] { return intake_closed_.load() != 0 && queues_.empty(); };
  run_loop([&] { return serve_queued(here); }, ended, idle);
}

void host_dispatcher::wait_for_go() const {
  while (gate_.load() == gate::closed)
    std::this_thread::sleep_for(std::chrono::microseconds(20));
}

// No request was accepted yet, so the queues are empty.
void host_dispatcher::abandon_start() {
  intake_closed_.store(1);
  gate_.store(gate::abandoned);
  thread_.join_until(steady_clock::time_point::max());
  for (loop_thread &t : pool_)
    t.join_until(steady_clock::time_point::max());
}

thread_placement host_dispatcher::placement(int core) const {
  return {core, setup_.options.numa_node, setup_.options.realtime_priority};
}

void host_dispatcher::loop() {
  const cudaq_dispatcher_options_t &o = setup_.options;
  const auto serve_ring = [this, &o] {
    const serving_scope mark(this);
    run_loop([this] { return turn(); }, [this] { return stop_seen(); },
             idle_strategy(static_cast<cudaq_wait_policy_t>(o.wait_policy), o.block_interval_ns));
    close_intake();
  };
  if (graphs_.none())
    serve_ring();
  else
    graphs_.run_on_device(serve_ring);
  // After the caller's shutdown flag it may take long until a thread calls stop. The shared ring must not wait for
  // that: this thread leaves it as soon as its deferred jobs, and those of the pool, are answered.
  while (shared() && has_jobs() && stop_.load() == 0)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  // The same for a dataplane: only this thread, and a thread that stops, may send answers.
  while (has_dataplane() && !dataplane_.send_all(counters_[kLoopCounters]) && stop_.load() == 0)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  if (shared() && !has_jobs())
    leave_ring();
}

// Reads them after every request, but not at every poll: reading two more words would delay the next request.
bool host_dispatcher::stop_seen() {
  const bool due = empty_turns_ == 0 || empty_turns_ >= kResyncTurns || ++polls_ % 16 == 0;
  return due && stop_requested();
}

bool host_dispatcher::is_own_thread() const { return serving_for == this; }

std::uint32_t host_dispatcher::turn() {
  thread_counters &here = counters_[kLoopCounters];
  job_table &jobs = *setup_.jobs;
  std::uint32_t work = graphs_.none() ? 0 : graphs_.turn(here);
  here.answered_at = 0;
  if (shared()) {
    work += setup_.router->route(kBatch, *this, here);
    if (setup_.options.handler_pool_size == 0)
      work += serve_queued(here);
  } else if (has_dataplane()) {
    work += dataplane_turn(here);
  } else {
    std::uint32_t i = jobs.cursor.peek();
    while (work < kBatch && (work == 0 || !stop_requested()) && !graphs_.holds_intake() &&
           take_turn(jobs.ring, i, handlers_.index(), handlers_.rules(), *this) > turn_result::waiting) {
      i = jobs.ring.next(i);
      jobs.cursor.set(i);
      ++work;
      if (graphs_.backlog()) {
        graphs_.turn(here);
        here.answered_at = 0;
      }
    }
  }
  if (work == 0) {
    idle_turn();
    return 0;
  }
  empty_turns_ = 0;
  store_relaxed(*setup_.stats, stats_value());
  return work;
}

std::uint32_t host_dispatcher::dataplane_turn(thread_counters &here) {
  job_table &jobs = *setup_.jobs;
  std::uint32_t work = dataplane_.send(here), i = 0;
  while (work < kBatch && (work == 0 || !stop_requested()) && !graphs_.holds_intake() && dataplane_.receive(i, here)) {
    jobs.cursor.set(i);
    take_turn(jobs.ring, i, handlers_.index(), handlers_.rules(), *this);
    dataplane_.finish_turn(here);
    ++work;
    if (graphs_.backlog())
      graphs_.turn(here);
    here.answered_at = 0; // sending and graphs take time
  }
  return work;
}

void host_dispatcher::idle_turn() {
  thread_counters &here = counters_[kLoopCounters];
  learn_collected();
  // A look over the ring polls many slots. Between sleeps this cost does not matter.
  const bool sleeping = setup_.options.wait_policy == CUDAQ_WAIT_BLOCK && empty_turns_ >= idle_strategy::kSpins;
  if (++empty_turns_ % kResyncTurns != 0 && !sleeping)
    return;
  here.heartbeat.bump();
  store_relaxed(*setup_.stats, stats_value());
  if (has_dataplane())
    return;
  const std::uint32_t slots = sleeping ? job_table::kResyncSlotsAsleep : job_table::kResyncSlots;
  job_table &jobs = *setup_.jobs;
  if (!shared() && empty_turns_ == kResyncTurns)
    jobs.restart_resync();
  if (shared() ? setup_.router->resync_shared_cursor(slots) : jobs.resync_cursor(slots))
    here.cursor_jumps.bump();
}

// On a ring that is not shared only this dispatcher sets tx flags. A tx flag that is 0 while its slot has no job stays
// 0 until the slot's next answer. Therefore it is read in idle turns. After the arrival of a request, this read would
// have to wait for the flag's cache line, which the consumer writes.
void host_dispatcher::learn_collected() {
  const job_table &jobs = *setup_.jobs;
  const std::uint32_t i = jobs.cursor.peek();
  if (collected_slot_ != i && !shared() && !has_dataplane() && no_job(i) && jobs.ring.collected(i))
    collected_slot_ = i;
}

bool host_dispatcher::may_take(std::uint32_t i) {
  if (times_.on())
    taken_at_ = times_.now_taken(counters_[kLoopCounters]);
  const bool known = collected_slot_ == i;
  collected_slot_ = function_index_view::kNone;
  if (known || setup_.jobs->ring.collected(i)) [[likely]]
    return true;
  if (busy_slot_ != i)
    counters_[kLoopCounters].tx_busy_waits.bump();
  busy_slot_ = i;
  return false;
}

void host_dispatcher::note_taken(std::uint32_t, const request &, bool expected_flag) {
  thread_counters &here = counters_[kLoopCounters];
  here.heartbeat.bump();
  if (!expected_flag)
    here.unexpected_flag_values.bump();
  busy_slot_ = function_index_view::kNone;
}

void host_dispatcher::note_dropped(verdict why) { counters_[kLoopCounters].count_drop(why); }

handler_result host_dispatcher::serve(std::uint32_t i, const request &r, std::uint32_t route) {
  if (queued_ || graphs_.serves(route)) {
    accept(i, r, {verdict::serve, CUDAQ_RPC_OK, route});
    return {false};
  }
  thread_counters &here = counters_[kLoopCounters];
  here.dispatched.bump();
  if (tracks_jobs_.peek() == 0) {
    const slot_ring &ring = setup_.jobs->ring;
    if (times_.on())
      timed_route_ = route;
    return handlers_.checked(route, handlers_.run(ring, i, r, route, 0, here));
  }
  write_record((*setup_.jobs)[i], r, {verdict::serve, CUDAQ_RPC_OK, route}, false);
  run_job(i, here);
  return {false};
}

void host_dispatcher::note_refused() {
  counters_[kLoopCounters].refused.bump();
  counters_[kLoopCounters].closed.bump(); // answered in this turn, without a job
}

void host_dispatcher::note_answered(std::int32_t status) {
  counters_[kLoopCounters].count_response(status);
  if (timed_route_ == function_index_view::kNone)
    return;
  times_.record(counters_[kLoopCounters], timed_route_, taken_at_);
  timed_route_ = function_index_view::kNone;
}

void host_dispatcher::write_record(job_record &record, const request &r, const judgement &what, bool marked) {
  record.req = r;
  record.what = what;
  record.owner.set(this);
  record.marked = marked;
  record.cuda_error = 0;
  record.taken_at = shared() ? times_.now() : taken_at_; // of a shared ring the router has seen the flag
  record.library_answers.set(false);
}

void host_dispatcher::accept(std::uint32_t slot, const request &r, const judgement &what) {
  job_table &jobs = *setup_.jobs;
  const bool graph = what.what == verdict::serve && graphs_.serves(what.route);
  const bool marked = setup_.markers && !graph && setup_.options.handler_pool_size != 0;
  write_record(jobs[slot], r, what, marked);
  jobs[slot].state.enter(job_phase::queued);
  thread_counters &counts = shared() ? counters_[kSharedCounters] : counters_[kLoopCounters];
  counts.count(what.what == verdict::serve ? counts.dispatched : counts.refused);
  if (graph) {
    graphs_.push(slot, what.route);
    return;
  }
  const bool routed = what.route != function_index_view::kNone;
  const std::uint32_t queue = queues_.size() == 1 ? 0 : routed ? what.route : queues_.size() - 1;
  if (marked) { // IN_FLIGHT holds the slot, so rx is cleared before any thread can answer
    jobs.ring.mark_in_flight(slot);
    jobs.ring.release_rx(slot);
  }
  queues_.push(queue, slot);
}

std::uint32_t host_dispatcher::serve_queued(thread_counters &here) {
  work_queues::item item;
  if (!queues_.pop(static_cast<std::uint32_t>(here.heartbeat.value() % queues_.size()), item))
    return 0;
  here.heartbeat.bump();
  run_job(item.slot, here);
  queues_.done(item);
  return 1;
}

// On the thread that serves the slot. No other thread publishes for the slot before the handler has returned.
void host_dispatcher::run_job(std::uint32_t slot, thread_counters &here) {
  job_table &jobs = *setup_.jobs;
  job_record &record = jobs[slot];
  const std::uint64_t generation = record.state.generation();
  const handler_result response{true, record.what.status, 0};
  if (record.what.what == verdict::serve) {
    record.state.enter(job_phase::running); // before the handler runs: it may hand the job to other threads
    responder_.handler_returned(jobs, slot, generation,
                                handlers_.run(jobs.ring, slot, record.req, record.what.route, generation, here), here);
    return;
  }
  responder_.publish(jobs, slot, response, here);
}

// Any thread of the program may call it at any time.
expected<> host_dispatcher::complete_deferred(const cudaq_host_job_t &job, std::int32_t status,
                                              std::uint32_t result_len) {
  const used_jobs::use jobs(jobs_);
  if (!jobs && max_result_len_.peek() == 0)
    return make_reason(CUDAQ_ERR_STATE, "the dispatcher was never started: it has no jobs");
  if (!jobs)
    return make_reason(CUDAQ_ERR_STATE,
                       "the job of request %u in slot %u was completed already: the dispatcher is wired to another "
                       "ring since",
                       job.request_id, job.slot);
  if (job.slot >= jobs->num_slots)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "job->slot is %u; the ring has %u slots", job.slot, jobs->num_slots);
  if (result_len > max_result_len_.peek())
    return make_reason(CUDAQ_ERR_INVALID_ARG, "result_len is %u; a slot holds at most %u result bytes", result_len,
                       max_result_len_.peek());
  if (status == CUDAQ_HOST_CALL_DEFERRED)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "status is CUDAQ_HOST_CALL_DEFERRED: a completion cannot defer; pass the final status");
  // Only these words of the record are read before the claim: the slot may have another request by now.
  const job_record &record = (*jobs)[job.slot];
  const job_state::snapshot seen = record.state.load();
  if (seen.generation == job.generation && record.owner.peek() != this)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "the job of request %u in slot %u belongs to another dispatcher",
                       job.request_id, job.slot);
  if (seen.generation == job.generation && record.library_answers.peek())
    return make_reason(CUDAQ_ERR_STATE,
                       "the job of request %u in slot %u belongs to a graph worker whose completion is not "
                       "CALLER_PUBLISHES: the library completes it",
                       job.request_id, job.slot);
  if (!responder_.complete(*jobs, job.slot, job.generation, {true, status, result_len}))
    return make_reason(CUDAQ_ERR_STATE, "the job of request %u in slot %u was completed already", job.request_id,
                       job.slot);
  return {};
}

// How a run ends: the intake closes, the accepted requests are answered, the threads are joined.

void host_dispatcher::close_intake() {
  thread_counters &here = counters_[kLoopCounters];
  if (shared())
    setup_.router->begin_leaving(*this);
  intake_closed_.store(1);
  if (setup_.options.handler_pool_size == 0)
    while (serve_queued(here) != 0) {
    }
  graphs_.drain(own_thread_, here);
  store_relaxed(*setup_.stats, stats_value());
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
  graphs_.collect_after_end(counters_[kLoopCounters]);
  // The loop's thread has ended, so this thread may send the answers that are complete now.
  const auto idle = [this] { return has_dataplane() ? dataplane_.send_all(counters_[kLoopCounters]) : !has_jobs(); };
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
    job_record &record = jobs[i];
    const job_state::snapshot seen = record.state.load(); // read before the owner: a later job has another generation
    if (seen.phase != job_phase::deferred || record.owner.peek() != this)
      continue;
    // Before the other words of the record are read: on a shared ring another member may write them for the next
    // request, if the job was completed since the look.
    if (!record.state.claim(seen.generation, job_phase::deferred, job_phase::completing))
      continue;
    if (record.marked && responder_.answered_elsewhere(jobs, i)) // tx is set, but the caller did not release the worker
      responder_.close_claimed(jobs, i, counters_[kSharedCounters]);
    else
      responder_.publish(jobs, i, {true, CUDAQ_RPC_ERR_SHUTTING_DOWN, 0}, counters_[kSharedCounters]);
  }
}

void host_dispatcher::release_ring() {
  jobs_.release();
  setup_.jobs.reset();
  setup_.router.reset();
}

} // namespace cudaq::realtime::detail
