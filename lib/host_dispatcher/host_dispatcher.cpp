// SPDX-License-Identifier: Apache-2.0
#include "lib/host_dispatcher/host_dispatcher.h"

namespace cudaq::realtime::detail {
namespace {
/// The dispatcher whose handlers this thread runs.
thread_local const host_dispatcher *serving_for = nullptr;
} // namespace

host_dispatcher::host_dispatcher() {
  lanes_.reserve(kFirstPoolLane + kMaxPoolThreads);
  lanes_.emplace_back(true);
  for (std::uint32_t i = 1; i < kFirstPoolLane + kMaxPoolThreads; ++i)
    lanes_.emplace_back(false);
}

finding host_dispatcher::prepare(host_setup setup) {
  const cudaq_dispatcher_options_t &o = setup.options;
  judge_rules rules;
  rules.served_modes = 1u << CUDAQ_DISPATCH_HOST_CALL;
  rules.answer_unknown = o.unknown_function == CUDAQ_UNKNOWN_FUNCTION_ANSWER;
  rules.check_schema = o.check_schema != 0;
  rules.strict_flag_values = o.strict_flag_values != 0;
  if (finding refused = executor_.prepare(setup.table, setup.v2, rules))
    return refused;
  const slot_ring &ring = setup.ledger->ring;
  const bool pool = o.handler_pool_size != 0;
  const bool per_function = pool && o.ordering == CUDAQ_ORDERING_FIFO;
  // One queue more than routes: for requests of a shared ring that are answered without a handler.
  queues_.reset(per_function ? executor_.index().num_routes + 1 : 1, ring.num_slots, per_function);
  const std::size_t scratch_words = ring.in_place() ? (ring.slot_size + 7) / 8 : 0;
  const std::uint32_t lanes_now = kFirstPoolLane + o.handler_pool_size;
  for (std::uint32_t l = 0; l < lanes_now; ++l)
    lanes_[l].scratch.assign(scratch_words, 0);
  if (lanes_now > lanes_used_.peek())
    lanes_used_.set(lanes_now);
  queued_ = pool || setup.shared_ring;
  tracks_jobs_ = queued_ || executor_.may_defer();
  max_result_len_.set(ring.max_payload());
  ledger_.store(setup.ledger.get());
  setup_ = std::move(setup);
  stats_base_.set(load_relaxed(*setup_.stats) - processed());
  stop_.store(0);
  intake_closed_.store(0);
  polls_ = 0;
  empty_turns_ = 1; // stop is looked for after a request; none was served yet
  busy_slot_ = collected_slot_ = function_index_view::kNone;
  return {};
}

// The ring is joined last: from then on requests are accepted, and must find threads that serve them.
finding host_dispatcher::start(bool with_thread) {
  gate_.store(gate::closed);
  finding refused;
  try {
    refused = start_threads(with_thread);
    if (!refused && setup_.shared_ring)
      refused = setup_.ledger->attach(*this);
  } catch (...) {
    abandon_start();
    throw;
  }
  if (refused)
    abandon_start();
  else
    gate_.store(gate::open);
  return refused;
}

finding host_dispatcher::start_threads(bool with_thread) {
  const cudaq_dispatcher_options_t &o = setup_.options;
  for (std::uint32_t p = 0; p < o.handler_pool_size; ++p) {
    const int core = o.handler_core_base == CUDAQ_CORE_ANY ? CUDAQ_CORE_ANY : o.handler_core_base + static_cast<int>(p);
    if (finding refused = pool_[p].start("cudaq-pool-" + std::to_string(p), placement(core), [this, p] {
          wait_for_go();
          serving_for = this;
          run_loop([this, p] { return serve_queued(lanes_[kFirstPoolLane + p]); },
                   [this] { return intake_closed_.load() != 0 && queues_.empty(); },
                   idle_strategy(static_cast<cudaq_wait_policy_t>(setup_.options.wait_policy),
                                 setup_.options.block_interval_ns));
        }))
      return refused;
  }
  if (!with_thread)
    return {};
  return thread_.start("cudaq-dispatch", placement(o.dispatcher_core), [this] {
    wait_for_go();
    if (gate_.load() == gate::open)
      loop();
  });
}

void host_dispatcher::wait_for_go() const {
  while (gate_.load() == gate::closed)
    std::this_thread::sleep_for(std::chrono::microseconds(20));
}

// The queues are empty: nothing was accepted yet.
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
  const host_dispatcher *outer = serving_for;
  serving_for = this;
  run_loop([this] { return turn(); }, [this] { return stop_seen(); },
           idle_strategy(static_cast<cudaq_wait_policy_t>(o.wait_policy), o.block_interval_ns));
  close_intake();
  serving_for = outer;
  // Ended by the caller's flag, nobody may call stop for long: the ring must not wait for that.
  while (setup_.shared_ring && has_jobs() && stop_.load() == 0)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  if (setup_.shared_ring && !has_jobs())
    leave_ring();
}

// After every request, but not at every poll: that would be in the way of seeing the next request.
bool host_dispatcher::stop_seen() {
  const bool look = empty_turns_ == 0 || empty_turns_ >= kResyncTurns || ++polls_ % 16 == 0;
  return look && stop_requested();
}

void host_dispatcher::close_intake() {
  if (setup_.shared_ring)
    setup_.ledger->begin_leaving(*this);
  intake_closed_.store(1);
  if (setup_.options.handler_pool_size == 0)
    while (serve_queued(lanes_[kLoopLane]) != 0) {
    }
  store_relaxed(*setup_.stats, stats_value());
}

void host_dispatcher::leave_ring() {
  if (setup_.shared_ring)
    setup_.ledger->remove(*this);
}

bool host_dispatcher::is_own_thread() const { return serving_for == this; }

std::uint32_t host_dispatcher::turn() {
  lane &here = lanes_[kLoopLane];
  ring_ledger &ledger = *setup_.ledger;
  std::uint32_t work = 0;
  if (setup_.shared_ring) {
    work = ledger.route(kBatch, *this, here);
    if (setup_.options.handler_pool_size == 0)
      work += serve_queued(here);
  } else {
    std::uint32_t i = ledger.cursor.peek();
    while (work < kBatch && (work == 0 || !stop_requested()) &&
           take_turn(ledger.ring, i, executor_.index(), executor_.rules(), *this) > turn_result::waiting) {
      i = ledger.ring.next(i);
      ledger.cursor.set(i);
      ++work;
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

void host_dispatcher::idle_turn() {
  lane &here = lanes_[kLoopLane];
  learn_collected();
  // A look over the ring costs a poll of every slot. Once turns are sleeps, it costs nothing beside them.
  const bool sleeping = setup_.options.wait_policy == CUDAQ_WAIT_BLOCK && empty_turns_ >= idle_strategy::kSpins;
  if (++empty_turns_ % kResyncTurns != 0 && !sleeping)
    return;
  here.heartbeat.bump();
  store_relaxed(*setup_.stats, stats_value());
  if (setup_.shared_ring ? setup_.ledger->resync_shared_cursor() : setup_.ledger->resync_cursor())
    here.cursor_jumps.bump();
}

// Only this side ever sets a tx flag, unless others share the ring. Seen clear while the slot has no job, it stays clear
// until the slot's next answer. So it is looked at while there is nothing to do: when a request has come, its cache line,
// in which the consumer writes, would have to be waited for.
void host_dispatcher::learn_collected() {
  const ring_ledger &ledger = *setup_.ledger;
  const std::uint32_t i = ledger.cursor.peek();
  if (collected_slot_ != i && !setup_.shared_ring && no_job(i) && ledger.ring.collected(i))
    collected_slot_ = i;
}

bool host_dispatcher::may_take(std::uint32_t i) {
  const bool known = collected_slot_ == i;
  collected_slot_ = function_index_view::kNone;
  if (known || setup_.ledger->ring.collected(i)) [[likely]]
    return true;
  if (busy_slot_ != i)
    lanes_[kLoopLane].tx_busy_waits.bump();
  busy_slot_ = i;
  return false;
}

void host_dispatcher::note_taken(std::uint32_t, const request &, bool expected_flag) {
  lane &here = lanes_[kLoopLane];
  here.heartbeat.bump();
  if (!expected_flag)
    here.unexpected_flag_values.bump();
  busy_slot_ = function_index_view::kNone;
}

void host_dispatcher::note_dropped(verdict why) { lanes_[kLoopLane].count_drop(why); }

outcome host_dispatcher::serve(std::uint32_t i, const request &r, std::uint32_t route) {
  if (queued_) {
    accept(i, r, {verdict::serve, CUDAQ_RPC_OK, route});
    return {false};
  }
  lane &here = lanes_[kLoopLane];
  here.dispatched.bump();
  if (!tracks_jobs_)
    return executor_.run(setup_.ledger->ring, i, r, route, 0, here);
  write_record(setup_.ledger->slots[i], r, {verdict::serve, CUDAQ_RPC_OK, route}, false);
  run_job(i, here);
  return {false};
}

void host_dispatcher::note_refused() { lanes_[kLoopLane].refused.bump(); }

void host_dispatcher::note_answered(std::int32_t status) { lanes_[kLoopLane].count_response(status); }

void host_dispatcher::write_record(slot_record &record, const request &r, const judgement &what, bool marked) {
  record.req = r;
  record.what = what;
  record.owner.set(this);
  record.marked = marked;
}

void host_dispatcher::accept(std::uint32_t slot, const request &r, const judgement &what) {
  ring_ledger &ledger = *setup_.ledger;
  const bool marked = setup_.markers && setup_.options.handler_pool_size != 0;
  write_record(ledger.slots[slot], r, what, marked);
  ledger.slots[slot].state.enter(slot_phase::queued);
  lane &counts = setup_.shared_ring ? lanes_[kSharedLane] : lanes_[kLoopLane];
  counts.count(what.what == verdict::serve ? counts.dispatched : counts.refused);
  const bool routed = what.route != function_index_view::kNone;
  const std::uint32_t queue = queues_.size() == 1 ? 0 : routed ? what.route : queues_.size() - 1;
  if (marked) { // IN_FLIGHT holds the slot, so rx can go before anybody can answer
    ledger.ring.mark_in_flight(slot);
    ledger.ring.release_rx(slot);
  }
  queues_.push(queue, slot);
}

std::uint32_t host_dispatcher::serve_queued(lane &here) {
  work_queues::item item;
  if (!queues_.pop(static_cast<std::uint32_t>(here.heartbeat.value() % queues_.size()), item))
    return 0;
  here.heartbeat.bump();
  run_job(item.slot, here);
  queues_.done(item);
  return 1;
}

// On the thread that serves the slot. Nobody else publishes before this returns.
void host_dispatcher::run_job(std::uint32_t slot, lane &here) {
  ring_ledger &ledger = *setup_.ledger;
  slot_record &record = ledger.slots[slot];
  const std::uint64_t generation = record.state.generation();
  outcome said{true, record.what.status, 0};
  if (record.what.what == verdict::serve) {
    record.state.enter(slot_phase::running); // from here on the handler may hand the job to other threads
    said = executor_.run(ledger.ring, slot, record.req, record.what.route, generation, here);
    // A completion that came while the handler ran goes before whatever the handler returned: it was accepted.
    if (record.state.claim(generation, slot_phase::running, said.now ? slot_phase::completing : slot_phase::deferred)) {
      if (!said.now)
        return;
    } else if (record.state.claim(generation, slot_phase::early, slot_phase::passed_on)) {
      return;
    } else {
      said = record.early;
    }
  }
  publish(ledger, slot, said, here);
}

bool host_dispatcher::complete(ring_ledger &ledger, std::uint32_t slot, std::uint64_t generation, const outcome &said) {
  slot_record &record = ledger.slots[slot];
  slot_state &state = record.state;
  bool mine = state.claim(generation, slot_phase::deferred, slot_phase::completing);
  if (!mine && state.claim(generation, slot_phase::running, slot_phase::early)) {
    record.early = said;
    if (state.claim(generation, slot_phase::early, slot_phase::left))
      return true;
    // The handler has returned in the meantime.
    mine = state.claim(generation, slot_phase::passed_on, slot_phase::completing);
  } else if (!mine) { // it may have deferred between the two looks
    mine = state.claim(generation, slot_phase::deferred, slot_phase::completing);
  }
  if (mine)
    publish(ledger, slot, said, lanes_[kSharedLane]);
  return mine;
}

void host_dispatcher::publish(ring_ledger &ledger, std::uint32_t slot, outcome said, lane &counts) {
  slot_record &record = ledger.slots[slot];
  if (record.what.what == verdict::serve)
    said = executor_.checked(ledger.ring, record.what.route, said);
  write_response(ledger.ring.tx_slot(slot), record.req, said.status, said.result_len);
  counts.count_response(said.status);
  if (record.marked)
    ledger.ring.publish_tx(slot);
  else
    ledger.ring.publish(slot);
  record.state.finish();
}

finding host_dispatcher::complete_deferred(const cudaq_host_job_t &job, std::int32_t status, std::uint32_t result_len) {
  ring_ledger *ledger = ledger_.load();
  if (ledger == nullptr)
    return make_finding(CUDAQ_ERR_STATE, "the dispatcher was never started");
  if (job.slot >= ledger->num_slots)
    return make_finding(CUDAQ_ERR_INVALID_ARG, "job->slot is %u, the ring has %u slots", job.slot, ledger->num_slots);
  if (result_len > max_result_len_.peek())
    return make_finding(CUDAQ_ERR_INVALID_ARG, "result_len is %u, a slot holds %u bytes of result", result_len,
                        max_result_len_.peek());
  if (status == CUDAQ_HOST_CALL_DEFERRED)
    return make_finding(CUDAQ_ERR_INVALID_ARG, "status is CUDAQ_HOST_CALL_DEFERRED; a completion cannot be deferred");
  // Nothing else of the slot's record is read before the claim: it may belong to another request by now.
  const slot_record &record = ledger->slots[job.slot];
  if (record.state.generation() == job.generation && record.owner.peek() != this)
    return make_finding(CUDAQ_ERR_INVALID_ARG, "the job of request %u in slot %u is another dispatcher's",
                        job.request_id, job.slot);
  if (!complete(*ledger, job.slot, job.generation, {true, status, result_len}))
    return make_finding(CUDAQ_ERR_STATE, "the job of request %u in slot %u was completed already", job.request_id,
                        job.slot);
  return {};
}

bool host_dispatcher::finish(steady_clock::time_point deadline) {
  const auto join_all = [this](steady_clock::time_point until) {
    bool joined = thread_.join_until(until);
    for (loop_thread &t : pool_)
      joined = joined && t.join_until(until);
    return joined;
  };
  if (!join_all(deadline)) {
    if (in_handler())
      return false;
    // No handler is to blame: threads may sleep for their block interval, or have lost their core.
    const auto nap = std::chrono::nanoseconds(2 * setup_.options.block_interval_ns) + std::chrono::milliseconds(200);
    if (!join_all(steady_clock::now() + nap))
      return false;
  }
  const auto idle = [this] { return !has_jobs(); };
  if (setup_.ledger && !wait_until(deadline, idle)) {
    give_up_deferred_jobs();
    // What is left now is being published by the thread that completed it, which runs no handler.
    if (!wait_until(steady_clock::now() + std::chrono::seconds(1), idle))
      return false;
  }
  if (setup_.stats != nullptr)
    store_relaxed(*setup_.stats, stats_value());
  return true;
}

bool host_dispatcher::in_handler() const {
  for (std::uint32_t l = 0; l < lanes_used_.peek(); ++l)
    if (lanes_[l].busy.peek() != 0)
      return true;
  return false;
}

/// A job of this dispatcher is not answered, or its answer is not out yet.
bool host_dispatcher::has_jobs() const {
  const ring_ledger &ledger = *setup_.ledger;
  for (std::uint32_t i = 0; i < ledger.num_slots; ++i) {
    const slot_phase phase = ledger.slots[i].state.phase();
    if (phase != slot_phase::open && phase != slot_phase::parked && ledger.slots[i].owner.peek() == this)
      return true;
  }
  return false;
}

// Only deferred jobs can be left here: every thread that runs handlers has ended.
void host_dispatcher::give_up_deferred_jobs() {
  ring_ledger &ledger = *setup_.ledger;
  for (std::uint32_t i = 0; i < ledger.num_slots; ++i) {
    const slot_record &record = ledger.slots[i];
    const slot_state::snapshot seen = record.state.look(); // before the owner: a later job has another generation
    if (seen.phase == slot_phase::deferred && record.owner.peek() == this)
      complete(ledger, i, seen.generation, {true, CUDAQ_RPC_ERR_SHUTTING_DOWN, 0});
  }
}

} // namespace cudaq::realtime::detail
