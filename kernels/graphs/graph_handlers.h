// SPDX-License-Identifier: Apache-2.0
// Turns the dispatch loop into a graph scheduler: a set of handlers in which some handlers are graphs, whose requests
// are accepted now and answered later; and a transport that skips slots whose request is accepted already.
#pragma once

#include "cudaq/realtime/detail/loop/handler_sets.h"
#include "cudaq/realtime/detail/loop/ring_transport.h"
#include "kernels/graphs/graph_scheduler_state.h"

namespace cudaq::realtime::detail {

/// Why an execution ended.
enum class execution_end : std::uint32_t {
  pass,     ///< another member goes on; this one relaunches itself
  relaunch, ///< no other member is there: this one goes on after its own relaunch
  stop,     ///< a stop was requested, and every accepted request is answered, or the poller is about to answer it;
            ///< or this execution's relaunch fails, no other member is there, and the grace period of the stop is over
};

/// How an execution ended, for the thread that acts on it. All lanes have the same value.
struct execution_result {
  execution_end why = execution_end::stop;
  std::uint32_t successor = 0;
  /// Error of this execution's relaunch, or 0. After an error the execution gets no new launches. It goes on to accept
  /// and to collect, with the launches that it has left, if any, until another member can take the token.
  int stranded = 0;
  /// Stranded with no launches left, and either all other members are lost, or a stop is requested while requests wait
  /// for a launch. Waiting requests then fail, and no new request is accepted.
  bool gave_up = false;
};

/// The table's device functions, and its graphs with the scheduler's state.
template <class Launcher>
class graph_handler_set : public table_handler_set {
  using base = table_handler_set;

public:
  static constexpr bool kDefers = true;
  /// Every 8th execution reads the caller's shutdown word when it begins: that word may be across PCIe.
  static constexpr std::uint32_t kPollCallerExecutions = 8;

  CUDAQ_REALTIME_HOST_DEVICE graph_handler_set(const table_handler_set &table, graph_scheduler_state<Launcher> &graphs,
                                               const graph_rotation &rotation, std::uint32_t number,
                                               execution_result &result)
      : base(table), graphs_(graphs), rotation_(rotation), number_(number), result_(result) {}

  CUDAQ_REALTIME_HOST_DEVICE bool defers(std::uint32_t route) const {
    return base::index_.routes[route].mode == CUDAQ_DISPATCH_GRAPH_LAUNCH;
  }
  /// The function has other routes, or this route serves its own key only. The routes of a function are sorted by key.
  CUDAQ_REALTIME_HOST_DEVICE bool by_key(std::uint32_t route) const {
    const function_index_view &index = base::index_;
    return index.routes[route].routing_key != 0 ||
           (route + 1 < index.num_routes && index.routes[route + 1].function_id == index.routes[route].function_id);
  }
  CUDAQ_REALTIME_HOST_DEVICE void accept(std::uint32_t slot, std::uint32_t route) const { graphs_.accept(slot, route); }
  /// What a handler's status means: the response's status. `lead`: the lane that writes the state.
  CUDAQ_REALTIME_HOST_DEVICE std::int32_t returned(std::int32_t status, bool lead) const {
    if (likely(status != kTriggerStatus || !graphs_.has_trigger()))
      return status;
    if (lead)
      graphs_.want_trigger();
    return CUDAQ_RPC_OK;
  }
  CUDAQ_REALTIME_HOST_DEVICE bool trigger_waits() const { return graphs_.trigger_waits(); }
  CUDAQ_REALTIME_HOST_DEVICE bool retries_soon() const { return graphs_.retries_soon(); }
  CUDAQ_REALTIME_HOST_DEVICE bool anything_completed() const { return graphs_.anything_completed(); }
  CUDAQ_REALTIME_HOST_DEVICE bool backlog() const { return graphs_.backlog(); }
  CUDAQ_REALTIME_HOST_DEVICE bool anything_to_try() const { return graphs_.anything_to_try(); }
  template <class Group>
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t collect() const {
    return graphs_.template collect<Group>();
  }
  template <class Fail>
  CUDAQ_REALTIME_HOST_DEVICE void pump(Fail &&fail) const {
    graphs_.pump(static_cast<Fail &&>(fail));
  }
  /// No member can launch any more: waiting requests fail, and no new request is accepted.
  CUDAQ_REALTIME_HOST_DEVICE bool gave_up() const { return result_.gave_up; }
  template <class Fail>
  CUDAQ_REALTIME_HOST_DEVICE void fail_waiting(Fail &&fail) const {
    graphs_.fail_waiting(static_cast<Fail &&>(fail));
  }

  // --- the grace period of a stop: one lane ---

  CUDAQ_REALTIME_HOST_DEVICE bool grace_is_over() const { return graphs_.grace_is_over(); }
  /// close(slot, publishes) for each graph that has ended without its signal. Reports these, and one that still runs.
  template <class Close>
  CUDAQ_REALTIME_HOST_DEVICE void close_silent(Close &&close) const {
    graph_report &found = state().found, &report = *state().report;
    const std::uint64_t late =
        graphs_.close_silent(rotation_, [&](std::uint32_t graph, std::uint32_t slot, bool publishes) {
          close(slot, publishes);
          store_relaxed(report.silent_graph, found.silent_graph = graph_in_slot(graph, slot));
          store_release(report.silent, ++found.silent);
        });
    if (late != found.late_graph)
      store_relaxed(report.late_graph, found.late_graph = late);
  }

  // --- one execution: the time in which a member holds the token ---

  CUDAQ_REALTIME_HOST_DEVICE loop_report &counts() const { return state().counts; }
  CUDAQ_REALTIME_HOST_DEVICE std::uint64_t polls() const { return state().polls; }
  CUDAQ_REALTIME_HOST_DEVICE bool stop_requested() const { return state().stop.requested != 0; }
  CUDAQ_REALTIME_HOST_DEVICE bool polls_caller() const { return state().execution % kPollCallerExecutions == 0; }

  /// By the whole group.
  template <class Group>
  CUDAQ_REALTIME_HOST_DEVICE bool execution_ends(bool stopped) const {
    Group::sync(); // the first lane writes the state
    if ((stopped || result_.gave_up) && graphs_.drained()) {
      result_.why = execution_end::stop;
      return true;
    }
    const bool overstayed = unlikely(stopped) && graphs_.overstayed();
    if (!overstayed && (result_.gave_up || !graphs_.spent()))
      return false;
    result_.successor = rotation_.template successor<Group>();
    if (result_.successor != number_) {
      result_.why = execution_end::pass;
      return true;
    }
    if (overstayed && result_.stranded != 0) { // no word reports the end of its graphs
      result_.gave_up = true;
      result_.why = execution_end::stop;
      return true;
    }
    if (result_.stranded != 0 && !graphs_.may_launch()) // a stop does not wait for a member that may never come
      result_.gave_up = (stopped && graphs_.backlog()) || rotation_.template alone<Group>();
    if (result_.stranded != 0 || !(overstayed || graphs_.may_relaunch()))
      return false;
    result_.why = execution_end::relaunch;
    result_.stranded = Group::from(Group::lane() == 0 ? graphs_.relaunch() : 0, 0);
    return result_.stranded == 0;
  }
  /// Saves what the next execution needs. Called by one lane.
  CUDAQ_REALTIME_HOST_DEVICE void note_execution(std::uint32_t cursor, std::uint64_t polls, bool stopped) const {
    graph_scheduler_words &s = state();
    s.cursor = cursor;
    s.polls = polls;
    s.stop.requested = stopped;
    s.counts.relaunches += result_.why != execution_end::stop;
    s.counts.unrelieved += result_.why == execution_end::relaunch;
  }

private:
  CUDAQ_REALTIME_HOST_DEVICE graph_scheduler_words &state() const { return graphs_.view().state; }

  graph_scheduler_state<Launcher> &graphs_;
  const graph_rotation &rotation_;
  const std::uint32_t number_;
  execution_result &result_;
};

/// The ring of a scheduler that is the ring's only dispatcher.
template <class Group, thread_scope Scope>
class graph_ring_transport : public ring_transport<Group, Scope> {
  using base = ring_transport<Group, Scope>;
  using base::here_;
  using base::ring_;

public:
  using typename base::message;
  CUDAQ_REALTIME_HOST_DEVICE graph_ring_transport(const slot_ring &r, const graph_state_view &graphs)
      : base(r, graphs.state.cursor), graphs_(graphs) {}

  /// Reads the held bit first: the poller clears it after the rx flag. In the other order this could see the old rx
  /// flag, then the cleared bit, and accept an answered request again.
  CUDAQ_REALTIME_HOST_DEVICE bool poll(std::uint32_t k, message &m) const {
    return !graphs_.holds(base::slot_at(k)) && base::poll(k, m);
  }
  CUDAQ_REALTIME_HOST_DEVICE static message of_slot(std::uint32_t slot) { return {slot, 0}; }
  CUDAQ_REALTIME_HOST_DEVICE void send(const message &m) const { answer(ring_.slot(m.slot)); }
  CUDAQ_REALTIME_HOST_DEVICE void discard(const message &m) const { ring_.give_back(m.slot); }
  CUDAQ_REALTIME_HOST_DEVICE void send_front(const message &) const { answer(here_); }
  /// Does not move the cursor past a held slot: that slot may be answered and refilled meanwhile, and its new request
  /// comes before those of later slots. (advance, after a request is accepted, does move past its slot.)
  CUDAQ_REALTIME_HOST_DEVICE bool seek() {
    return Group::ballot(Group::lane() == 0 && graphs_.holds(base::slot_at(0))) == 0 &&
           base::seek_by([this](std::uint32_t k, message &m) { return poll(k, m); },
                         [this](std::uint32_t k) { return graphs_.holds(base::slot_at(k)); });
  }

private:
  CUDAQ_REALTIME_HOST_DEVICE static void answer(const slot_words<Scope> &slot) {
    slot.publish_tx();
    slot.give_back();
  }

  graph_state_view graphs_;
};

} // namespace cudaq::realtime::detail
