// SPDX-License-Identifier: Apache-2.0
// What makes the dispatch loop a graph scheduler: a set of handlers of which some are graphs, whose requests are accepted
// now and answered later, and a transport that passes over slots whose request is accepted.
#pragma once

#include "cudaq/realtime/detail/loop/handler_sets.h"
#include "cudaq/realtime/detail/loop/ring_transport.h"
#include "kernels/graphs/graph_scheduler_state.h"
#include "kernels/graphs/graph_rotation.h"

namespace cudaq::realtime::detail {

/// Why a shift has ended.
enum class shift_end : std::uint32_t {
  pass,     ///< another member goes on; this one relaunches itself
  relaunch, ///< nobody is there: this one goes on when it is back
  stop,     ///< told to stop, and everything accepted is answered, or about to be by the harvester
};

/// How a shift has ended, for the thread that acts on it; the same in every lane.
struct shift_outcome {
  shift_end why = shift_end::stop;
  std::uint32_t successor = 0;
  int stranded =
      0; ///< why this execution cannot relaunch itself: it goes on, without launches, until another one comes
  bool gave_up = false; ///< and none will, or not before a stop
};

/// The table's device functions, and its graphs behind a ledger.
template <class Launcher>
class graph_handler_set : public table_handler_set {
  using base = table_handler_set;

public:
  static constexpr bool kDefers = true;
  static constexpr std::uint32_t kAskCallerShifts = 8; ///< in each so many shifts his shutdown word is read at once

  CUDAQ_REALTIME_HOST_DEVICE graph_handler_set(const table_handler_set &table, graph_ledger<Launcher> &ledger,
                                               const graph_rotation &rotation, std::uint32_t number,
                                               shift_outcome &outcome)
      : base(table), ledger_(ledger), rotation_(rotation), number_(number), outcome_(outcome) {}

  CUDAQ_REALTIME_HOST_DEVICE bool defers(std::uint32_t route) const {
    return base::index_.routes[route].mode == CUDAQ_DISPATCH_GRAPH_LAUNCH;
  }
  /// The function has other routes, or this one serves its own key only. Routes of a function are sorted by key.
  CUDAQ_REALTIME_HOST_DEVICE bool by_key(std::uint32_t route) const {
    const function_index_view &index = base::index_;
    return index.routes[route].routing_key != 0 ||
           (route + 1 < index.num_routes && index.routes[route + 1].function_id == index.routes[route].function_id);
  }
  CUDAQ_REALTIME_HOST_DEVICE void accept(std::uint32_t slot, std::uint32_t route) const { ledger_.accept(slot, route); }
  CUDAQ_REALTIME_HOST_DEVICE bool hurries() const { return ledger_.hurries(); }
  CUDAQ_REALTIME_HOST_DEVICE bool anything_landed() const { return ledger_.anything_landed(); }
  CUDAQ_REALTIME_HOST_DEVICE bool backlog() const { return ledger_.backlog(); }
  CUDAQ_REALTIME_HOST_DEVICE bool anything_to_try() const { return ledger_.anything_to_try(); }
  template <class Group>
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t collect() const {
    return ledger_.template collect<Group>();
  }
  template <class Fail>
  CUDAQ_REALTIME_HOST_DEVICE void pump(Fail &&fail) const {
    ledger_.pump(static_cast<Fail &&>(fail));
  }
  /// Nothing can be launched any more, by nobody: what waits is to be failed, and nothing to be taken up.
  CUDAQ_REALTIME_HOST_DEVICE bool gave_up() const { return outcome_.gave_up; }
  template <class Fail>
  CUDAQ_REALTIME_HOST_DEVICE void fail_waiting(Fail &&fail) const {
    ledger_.fail_waiting(static_cast<Fail &&>(fail));
  }

  // --- one shift: the time that a member holds the token ---

  CUDAQ_REALTIME_HOST_DEVICE loop_report &counts() const { return state().counts; }
  CUDAQ_REALTIME_HOST_DEVICE std::uint64_t polls() const { return state().polls; }
  CUDAQ_REALTIME_HOST_DEVICE bool stop_requested() const { return state().stopping != 0; }
  CUDAQ_REALTIME_HOST_DEVICE bool asks_caller() const { return state().shift % kAskCallerShifts == 0; }

  /// By the whole group.
  template <class Group>
  CUDAQ_REALTIME_HOST_DEVICE bool shift_ends(bool stopped) const {
    Group::sync(); // the first lane writes the ledger
    if ((stopped || outcome_.gave_up) && ledger_.drained()) {
      outcome_.why = shift_end::stop;
      return true;
    }
    if (outcome_.gave_up || !ledger_.spent())
      return false;
    outcome_.successor = rotation_.template successor<Group>();
    if (outcome_.successor != number_) {
      outcome_.why = shift_end::pass;
      return true;
    }
    if (outcome_.stranded != 0 && !ledger_.may_launch()) // a stop does not wait for one who may never come
      outcome_.gave_up = (stopped && ledger_.backlog()) || rotation_.template alone<Group>();
    if (outcome_.stranded != 0 || !ledger_.may_relaunch())
      return false;
    outcome_.why = shift_end::relaunch;
    outcome_.stranded = Group::from(Group::lane() == 0 ? ledger_.relaunch() : 0, 0);
    return outcome_.stranded == 0;
  }
  /// What the next shift has to know. One lane.
  CUDAQ_REALTIME_HOST_DEVICE void note_shift(std::uint32_t cursor, std::uint64_t polls, bool stopped) const {
    graph_state &s = state();
    s.cursor = cursor;
    s.polls = polls;
    s.stopping = stopped;
    s.counts.relaunches += outcome_.why != shift_end::stop;
    s.counts.unrelieved += outcome_.why == shift_end::relaunch;
  }

private:
  CUDAQ_REALTIME_HOST_DEVICE graph_state &state() const { return ledger_.view().state; }

  graph_ledger<Launcher> &ledger_;
  const graph_rotation &rotation_;
  const std::uint32_t number_;
  shift_outcome &outcome_;
};

/// The ring of a scheduler that has no other dispatcher beside it.
template <class Group, cuda::thread_scope Scope>
class graph_ring_transport : public ring_transport<Group, Scope> {
  using base = ring_transport<Group, Scope>;

public:
  using typename base::message;
  CUDAQ_REALTIME_HOST_DEVICE graph_ring_transport(const slot_ring &r, const graph_ledger_view &ledger)
      : base(r, ledger.state.cursor), ledger_(ledger) {}

  /// The held bit comes first: it is cleared after the rx flag.
  CUDAQ_REALTIME_HOST_DEVICE bool poll(std::uint32_t k, message &m) const {
    return !ledger_.holds(base::slot_at(k)) && base::poll(k, m);
  }
  CUDAQ_REALTIME_HOST_DEVICE static message of_slot(std::uint32_t slot) { return {slot, 0}; }
  /// Not beyond a slot in flight: it may be answered and refilled already.
  CUDAQ_REALTIME_HOST_DEVICE bool seek() {
    return Group::ballot(Group::lane() == 0 && ledger_.holds(base::slot_at(0))) == 0 &&
           base::seek_by([this](std::uint32_t k, message &m) { return poll(k, m); },
                         [this](std::uint32_t k) { return ledger_.holds(base::slot_at(k)); });
  }

private:
  graph_ledger_view ledger_;
};

} // namespace cudaq::realtime::detail
