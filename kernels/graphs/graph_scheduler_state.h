// SPDX-License-Identifier: Apache-2.0
// The state of the graph scheduler: which requests are accepted, which graph serves each, which ones wait for a graph.
//
//   accept(slot, route)   launches an idle instance of the route if no earlier request waits; else the request waits
//   pump()                tries the first request of each queue for which an instance is idle
//   completion_poller::round()   another warp: finds completed graphs, publishes their answers, clears the held bits
//   collect()             makes completed instances idle again
//   close_silent()        after the grace period of a stop: finds graphs that have ended without their signal
//   want_trigger()        a handler has asked for the triggered graph; pump() launches it, before the next request
//
// Instances with the same context are never in flight together: a launch removes all of them from the idle lists of
// their pools, and the completion puts all of them back.
//
// One thread writes the state; the poller (completion_poller.h) takes `phase` from in_flight to completed. Host and
// device code. The Launcher has the device's part: launch(exec), and relaunch(), which launches this execution again
// after its end; both return 0 or an error. now_ns() reads a clock that is nearly the same for all members.
// Example: "Life of one request" in graph_scheduler.cuh.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"
#include "cudaq/realtime/detail/loop/thread_group.h"
#include "kernels/graphs/graph_rotation.h"

namespace cudaq::realtime::detail {

/// Where the state's parts are. `image` may be a copy of the block's beginning.
struct graph_state_view {
  CUDAQ_REALTIME_HOST_DEVICE graph_state_view(const graph_layout &l, std::uint8_t *image, std::uint8_t *block)
      : state(*reinterpret_cast<graph_scheduler_words *>(image)),
        graphs(reinterpret_cast<graph_instance *>(image + l.graphs)),
        pools(reinterpret_cast<graph_pool *>(image + l.pools)),
        queues(reinterpret_cast<wait_queue *>(image + l.queues)),
        held(reinterpret_cast<std::uint32_t *>(image + l.held)), jobs(reinterpret_cast<graph_job *>(block + l.jobs)),
        done_words(reinterpret_cast<std::uint64_t *>(block + l.done_words)), num_graphs(l.num_graphs),
        num_queues(l.num_queues) {}

  /// The request in the slot is accepted, and its rx flag is not cleared yet.
  CUDAQ_REALTIME_HOST_DEVICE bool holds(std::uint32_t slot) const {
    return (load_acquire<std::uint32_t, thread_scope_device>(held[slot / 32]) >> slot % 32 & 1u) != 0;
  }
  CUDAQ_REALTIME_HOST_DEVICE void hold(std::uint32_t slot) const {
    raise_device_bits(held[slot / 32], 1u << slot % 32);
  }
  CUDAQ_REALTIME_HOST_DEVICE void give_up(std::uint32_t slot) const {
    clear_device_bits(held[slot / 32], 1u << slot % 32);
  }

  graph_scheduler_words &state;
  graph_instance *graphs;
  graph_pool *pools;
  wait_queue *queues;
  std::uint32_t *held;
  graph_job *jobs;
  std::uint64_t *done_words;
  std::uint32_t num_graphs, num_queues;
};

inline constexpr auto kGraphScope = thread_scope_device; ///< scheduler, poller and graphs run on one device

/// The scheduler's side.
template <class Launcher>
class graph_scheduler_state {
public:
  // CUDA refuses a launch while the graph's last run ends, or if the graph was never uploaded. What is done depends on
  // the time since the first refusal:
  //
  //   time                    the graph has never run              the graph has run
  //   below kFreshNs          the launch is tried again at once    the same
  //   below kRetryNs          it is tried again after a pause      the same
  //   below kTryElsewhereNs   the launch fails                     it is tried again after a pause
  //   below kBusyNs           the launch fails                     another execution of the scheduler tries it, too
  //   longer                  the launch fails                     the launch fails
  static constexpr std::uint64_t kFreshNs = 2000;
  static constexpr std::uint64_t kRetryNs = 2000000;
  static constexpr std::uint64_t kBusyNs = 1000000000;
  static constexpr std::uint64_t kTryElsewhereNs = kBusyNs / 4;
  /// Longest pause between two attempts. A pause is half of the time since the first refusal, and at most this.
  static constexpr std::uint64_t kMaxPauseNs = 1000000;

  CUDAQ_REALTIME_HOST_DEVICE graph_scheduler_state(const graph_state_view &view, const slot_ring &ring,
                                                   Launcher launcher = {})
      : v_(view), ring_(ring), launcher_(launcher) {}

  CUDAQ_REALTIME_HOST_DEVICE const graph_state_view &view() const { return v_; }
  CUDAQ_REALTIME_HOST_DEVICE bool drained() const { return v_.state.accepted == 0 && !trigger_waits(); }
  /// It is time to look for a successor.
  CUDAQ_REALTIME_HOST_DEVICE bool spent() const { return v_.state.launches >= kPassAtLaunches || in_doubt(); }
  /// This execution can launch no more graphs, and its relaunch would not have to wait for one.
  CUDAQ_REALTIME_HOST_DEVICE bool may_relaunch() const { return v_.state.mine == 0 && (!may_launch() || in_doubt()); }
  CUDAQ_REALTIME_HOST_DEVICE bool may_launch() const { return v_.state.launches < kMaxLaunches; }
  /// Requests, or a trigger, wait for a graph.
  CUDAQ_REALTIME_HOST_DEVICE bool backlog() const { return v_.state.accepted != v_.state.in_flight || trigger_waits(); }
  CUDAQ_REALTIME_HOST_DEVICE bool has_trigger() const { return v_.state.trigger.exec != 0; }
  CUDAQ_REALTIME_HOST_DEVICE bool trigger_waits() const { return v_.state.trigger.wanted != 0; }
  CUDAQ_REALTIME_HOST_DEVICE int relaunch() const { return launcher_.relaunch(); }

  // --- one thread ---

  /// Called when an execution begins.
  CUDAQ_REALTIME_HOST_DEVICE void begin_execution() {
    graph_scheduler_words &s = v_.state;
    ++s.execution;
    s.launches = s.mine = s.doubt = 0;
  }

  /// Launches first and updates the state after that. Only the held bit is set before, since the poller clears it.
  CUDAQ_REALTIME_HOST_DEVICE void accept(std::uint32_t slot, std::uint32_t route) {
    const std::uint32_t queue = v_.pools[route].queue;
    v_.hold(slot);
    const bool waits = v_.queues[queue].first_job != kNoGraph || start(slot, route) != start_result::started;
    ++v_.state.accepted;
    if (unlikely(waits))
      append(queue, slot, route);
  }

  /// The handler that was called last asks for a launch of the triggered graph.
  CUDAQ_REALTIME_HOST_DEVICE void want_trigger() { v_.state.trigger.wanted = 1; }

  /// Tries the triggered graph, if it is wanted. Then tries the first request of each queue that has an idle instance.
  /// fail(slot) must answer a request whose launch has failed for good; its slot is given up after that.
  template <class Fail>
  CUDAQ_REALTIME_HOST_DEVICE void pump(Fail &&fail) {
    graph_scheduler_words &s = v_.state;
    s.retry_soon = 0;
    const std::uint64_t now = launcher_.now_ns();
    if (unlikely(trigger_waits()) && may_launch() && s.trigger.next_try <= now)
      launch_triggered();
    for (std::uint32_t n = s.waiting; n != 0 && may_launch(); --n) {
      const std::uint32_t queue = s.first_waiting;
      wait_queue &l = v_.queues[queue];
      remove_first_queue(l);
      if (v_.pools[l.route].next_try <= now)
        start_first(l, fail);
      list(queue);
    }
  }
  /// For when no graph can be launched any more: all waiting requests fail, and a trigger that waits.
  template <class Fail>
  CUDAQ_REALTIME_HOST_DEVICE void fail_waiting(Fail &&fail) {
    if (trigger_waits())
      end_trigger(cudaErrorLaunchFailure);
    while (v_.state.waiting != 0)
      remove_first_queue(v_.queues[v_.state.first_waiting]);
    for (std::uint32_t queue = 0; queue < v_.num_queues; ++queue)
      while (v_.queues[queue].first_job != kNoGraph)
        fail_first(v_.queues[queue], fail);
  }

  // --- a stop: one thread ---

  /// True when the grace period of the requested stop is over. The first call of a run begins it.
  CUDAQ_REALTIME_HOST_DEVICE bool grace_is_over() {
    graph_stop_words &stop = v_.state.stop;
    const std::uint64_t now = launcher_.now_ns();
    if (stop.grace_end == 0)
      stop.grace_end = now < ~v_.state.grace_ns ? now + v_.state.grace_ns : ~std::uint64_t{0};
    stop.over |= now >= stop.grace_end;
    return stop.over != 0;
  }
  /// The grace period is over, and this execution has graphs in flight: only its end shows whether they have ended.
  CUDAQ_REALTIME_HOST_DEVICE bool overstayed() const { return v_.state.stop.over != 0 && v_.state.mine != 0; }
  /// close(graph, slot, publishes) for each graph that has ended without its signal; it must answer the request, or
  /// give the slot back. A graph of which nothing will show its end is taken out of flight, too: its request stays in
  /// the slot. Returns graph_in_slot of a graph that may still run or is about to be completed, or 0.
  template <class Close>
  CUDAQ_REALTIME_HOST_DEVICE std::uint64_t close_silent(const graph_rotation &rotation, Close &&close) {
    std::uint64_t left = 0;
    for (std::uint32_t i = 0; i < v_.num_graphs; ++i) {
      const graph_instance &g = v_.graphs[i];
      if (phase_of(g) != graph_phase::in_flight)
        continue;
      const launched_graphs state = rotation.launched_by(g.execution); // before the completion word: that is final then
      if (state == launched_graphs::running ||
          load_acquire<std::uint64_t, kGraphScope>(v_.done_words[i]) == g.launch_number) {
        left = graph_in_slot(i, g.slot);
        continue;
      }
      if (state == launched_graphs::ended)
        close(i, g.slot, g.publishes != 0);
      v_.give_up(g.slot);
      complete(i);
    }
    return left;
  }

  // --- the whole group ---

  /// Another attempt may soon succeed: an instance has just completed for a waiting request, or was refused just now.
  CUDAQ_REALTIME_HOST_DEVICE bool retries_soon() const { return v_.state.retry_soon != 0 && anything_to_try(); }
  /// A request waits and an instance is idle, or a trigger waits; and this execution may launch.
  CUDAQ_REALTIME_HOST_DEVICE bool anything_to_try() const {
    return (v_.state.waiting != 0 || trigger_waits()) && may_launch();
  }
  /// Something has completed since the last collect.
  CUDAQ_REALTIME_HOST_DEVICE bool anything_completed() const { // relaxed: collect() has the acquire
    return load_relaxed(v_.state.completed) != v_.state.collected;
  }
  /// Makes completed instances idle. Returns their number to every lane.
  template <class Group>
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t collect() {
    std::uint32_t found = 0;
    for (std::uint32_t first = 0; first < v_.num_graphs; first += Group::kWidth) {
      const std::uint32_t i = first + Group::lane();
      const std::uint32_t completed =
          Group::ballot(i < v_.num_graphs && phase_of(v_.graphs[i]) == graph_phase::completed);
      found += count_bits(completed);
      if (Group::lane() == 0)
        for (std::uint32_t remaining = completed; remaining != 0; remaining &= remaining - 1)
          complete(first + lowest_bit(remaining));
    }
    if (Group::lane() == 0)
      v_.state.collected += found;
    Group::sync();
    return found;
  }

private:
  enum class start_result { started, later, failed };

  CUDAQ_REALTIME_HOST_DEVICE static graph_phase phase_of(const graph_instance &g) {
    return static_cast<graph_phase>(load_acquire<std::uint32_t, kGraphScope>(g.phase));
  }

  /// This execution may have fewer launches than kMaxLaunches. One that has launched nothing still has all of them.
  CUDAQ_REALTIME_HOST_DEVICE bool in_doubt() const { return v_.state.doubt != 0 && v_.state.launches != 0; }
  /// Launches an idle instance for the request, if there is one that can be launched now.
  CUDAQ_REALTIME_HOST_DEVICE start_result start(std::uint32_t slot, std::uint32_t route) {
    graph_pool &pool = v_.pools[route];
    graph_scheduler_words &s = v_.state;
    if (!may_launch() || pool.first_idle == kNoGraph)
      return start_result::later;
    std::uint32_t proven = 0;
    for (std::uint32_t tries = pool.idle; tries != 0; --tries) {
      const std::uint32_t i = pool.first_idle;
      const bool launched = launch(i, slot);
      take_first_idle(pool);
      if (likely(launched)) {
        ++s.launches, ++s.mine, ++s.in_flight, ++s.counts.launches;
        ++pool.taken;
        take_siblings(i);
        pool.refused_since = pool.next_try = 0;
        s.doubt = 0;
        return start_result::started;
      }
      put_idle(pool, i);
      proven |= v_.graphs[i].proven;
    }
    return is_refused_for_good(pool, pool.taken == 0, proven != 0) ? start_result::failed : start_result::later;
  }
  /// After a refused launch. Busy for a moment after its answer, not uploaded, or broken: the error code is the same.
  /// `Of`: a pool, or the triggered graph. False: it is tried again at next_try. `may_fail`: no graph that runs can
  /// become idle.
  template <class Of>
  CUDAQ_REALTIME_HOST_DEVICE bool is_refused_for_good(Of &of, bool may_fail, bool proven) {
    graph_scheduler_words &s = v_.state;
    const std::uint64_t now = launcher_.now_ns();
    if (of.refused_since == 0)
      of.refused_since = now;
    const std::uint64_t refused = now > of.refused_since ? now - of.refused_since : 0; // clocks of members differ
    s.doubt |= refused >= kTryElsewhereNs;
    if (may_fail && refused >= (proven ? kBusyNs : kRetryNs)) {
      of.next_try = 0; // the next one may fail without this wait
      return true;
    }
    const bool fresh = refused < kFreshNs;
    s.retry_soon |= fresh;
    of.next_try = fresh ? 0 : now + (refused / 2 < kMaxPauseNs ? refused / 2 : kMaxPauseNs);
    return false;
  }
  CUDAQ_REALTIME_HOST_DEVICE void launch_triggered() {
    graph_scheduler_words &s = v_.state;
    graph_trigger_words &t = s.trigger;
    if (const int error = launcher_.launch(t.exec)) {
      if (is_refused_for_good(t, true, t.proven != 0))
        end_trigger(error);
      return;
    }
    ++s.launches;
    t.proven = 1;
    t.refused_since = t.next_try = 0;
    s.doubt = 0;
    store_relaxed(s.report->triggered, ++s.found.triggered);
    end_trigger(0);
  }
  CUDAQ_REALTIME_HOST_DEVICE void end_trigger(int error) {
    v_.state.trigger.wanted = 0;
    store_relaxed(v_.state.report->trigger_error, v_.state.found.trigger_error = static_cast<std::uint64_t>(error));
  }
  template <class Fail>
  CUDAQ_REALTIME_HOST_DEVICE void start_first(wait_queue &l, Fail &fail) {
    const start_result result = start(l.first_job, l.route);
    if (result == start_result::started)
      take_first_job(l);
    else if (result == start_result::failed)
      fail_first(l, fail);
  }
  template <class Fail>
  CUDAQ_REALTIME_HOST_DEVICE void fail_first(wait_queue &l, Fail &fail) {
    const std::uint32_t slot = l.first_job;
    take_first_job(l);
    fail(slot);
    v_.give_up(slot);
    --v_.state.accepted;
  }

  CUDAQ_REALTIME_HOST_DEVICE bool launch(std::uint32_t i, std::uint32_t slot) {
    graph_instance &g = v_.graphs[i];
    const std::uint64_t launch_number = g.launch_number + 1;
    auto &io = *reinterpret_cast<GraphIOContextV2 *>(g.io);
    io.io.rx_slot = ring_.rx_slot(slot);
    io.io.tx_slot = ring_.tx_slot(slot);
    io.io.tx_stride_sz = ring_.tx_stride;
    if (g.publishes != 0) {
      io.io.tx_flag = &ring_.tx_flags[slot];
      io.io.tx_flag_value = reinterpret_cast<std::uint64_t>(ring_.tx_slot(slot));
      io.done = &v_.done_words[i];
      io.done_value = launch_number;
    } else {
      io.io.tx_flag = &v_.done_words[i];
      io.io.tx_flag_value = launch_number;
    }
    if (launcher_.launch(g.exec) != 0)
      return false;
    store_relaxed(g.launch_number, launch_number);
    g.slot = slot;
    g.execution = v_.state.execution;
    store_release<std::uint32_t, kGraphScope>(g.phase, static_cast<std::uint32_t>(graph_phase::in_flight));
    return true;
  }

  CUDAQ_REALTIME_HOST_DEVICE void complete(std::uint32_t i) {
    graph_instance &g = v_.graphs[i];
    store_release<std::uint32_t, kGraphScope>(g.phase, static_cast<std::uint32_t>(graph_phase::idle));
    --v_.state.in_flight;
    --v_.state.accepted;
    v_.state.mine -= g.execution == v_.state.execution;
    std::uint32_t k = i; // put back as the last one, so that siblings take turns
    do {
      k = v_.graphs[k].sibling;
      put_back(k);
    } while (k != i);
  }
  /// Makes the instance idle and resets the refusal times of its pool.
  CUDAQ_REALTIME_HOST_DEVICE void put_back(std::uint32_t i) {
    const std::uint32_t route = v_.graphs[i].pool;
    graph_pool &pool = v_.pools[route];
    --pool.taken;
    put_idle(pool, i);
    pool.refused_since = pool.next_try = 0;
    const wait_queue &l = v_.queues[pool.queue];
    if (l.first_job == kNoGraph || l.route != route)
      return;
    v_.state.retry_soon = 1;
    list(pool.queue);
  }
  /// Called after the launch of instance i: its siblings are not idle any more.
  CUDAQ_REALTIME_HOST_DEVICE void take_siblings(std::uint32_t i) {
    graph_instance &g = v_.graphs[i];
    const bool first = g.proven == 0;
    g.proven = 1;
    for (std::uint32_t k = g.sibling; k != i; k = v_.graphs[k].sibling) {
      graph_instance &other = v_.graphs[k];
      graph_pool &pool = v_.pools[other.pool];
      take_idle(pool, k);
      ++pool.taken;
      if (first && other.exec == g.exec)
        other.proven = 1;
    }
  }
  CUDAQ_REALTIME_HOST_DEVICE void take_first_idle(graph_pool &pool) {
    pool.first_idle = v_.graphs[pool.first_idle].next;
    --pool.idle;
  }
  CUDAQ_REALTIME_HOST_DEVICE void take_idle(graph_pool &pool, std::uint32_t i) {
    if (pool.first_idle == i)
      return take_first_idle(pool);
    std::uint32_t before = pool.first_idle;
    while (v_.graphs[before].next != i)
      before = v_.graphs[before].next;
    v_.graphs[before].next = v_.graphs[i].next;
    pool.last_idle = pool.last_idle == i ? before : pool.last_idle;
    --pool.idle;
  }
  CUDAQ_REALTIME_HOST_DEVICE void put_idle(graph_pool &pool, std::uint32_t i) {
    v_.graphs[i].next = kNoGraph;
    (pool.first_idle == kNoGraph ? pool.first_idle : v_.graphs[pool.last_idle].next) = i;
    pool.last_idle = i;
    ++pool.idle;
  }
  CUDAQ_REALTIME_HOST_DEVICE void append(std::uint32_t queue, std::uint32_t slot, std::uint32_t route) {
    wait_queue &l = v_.queues[queue];
    v_.jobs[slot] = {kNoGraph, route};
    if (l.first_job == kNoGraph) {
      l.first_job = slot;
      l.route = route;
      list(queue);
    } else {
      v_.jobs[l.last_job].next = slot;
    }
    l.last_job = slot;
  }
  CUDAQ_REALTIME_HOST_DEVICE void take_first_job(wait_queue &l) {
    l.first_job = v_.jobs[l.first_job].next;
    if (l.first_job != kNoGraph)
      l.route = v_.jobs[l.first_job].route;
  }
  /// Adds the queue to those that pump() tries, unless no instance is idle: put_back() then calls this again.
  CUDAQ_REALTIME_HOST_DEVICE void list(std::uint32_t queue) {
    graph_scheduler_words &s = v_.state;
    wait_queue &l = v_.queues[queue];
    if (l.next_waiting != kUnlisted || l.first_job == kNoGraph || v_.pools[l.route].first_idle == kNoGraph)
      return;
    l.next_waiting = kNoGraph;
    (s.first_waiting == kNoGraph ? s.first_waiting : v_.queues[s.last_waiting].next_waiting) = queue;
    s.last_waiting = queue;
    ++s.waiting;
  }
  CUDAQ_REALTIME_HOST_DEVICE void remove_first_queue(wait_queue &l) {
    v_.state.first_waiting = l.next_waiting;
    l.next_waiting = kUnlisted;
    --v_.state.waiting;
  }

  graph_state_view v_;
  slot_ring ring_;
  Launcher launcher_;
};

} // namespace cudaq::realtime::detail
