// SPDX-License-Identifier: Apache-2.0
// The graph handlers of a host dispatcher: requests wait in queues, the dispatcher's own thread launches them on idle
// workers between its turns and handles their ends. To a slot, a graph is a handler that defers.
//
//   push (by the thread that reads the ring) -> turn: launch ... the graph has ended -> the job is answered or closed
//
// What goes wrong: a launch fails (its request is answered when what its hooks have queued is over), a device is lost
// (everything pending is answered at once), a grace period ends (what waits is answered, what runs is waited for).
#pragma once

#include "lib/base/runner.h"
#include "lib/host_dispatcher/graph_workers.h"
#include "lib/host_dispatcher/job_responder.h"

namespace cudaq::realtime::detail {

/// By the dispatcher's own thread, except where it says "any thread".
class graph_path {
public:
  explicit graph_path(const job_responder &responder) : responder_(responder) {}

  /// Prepares a run over the routes of `index`, all workers idle; at most 64. While nothing runs.
  void reset(const std::vector<cudaq_host_worker_t> &workers, const function_index_view &index, job_table &jobs,
             const cudaq_dispatcher_options_t &options, std::shared_ptr<graph_launcher> launcher);
  /// Refuses a run while a worker of the last one is still with the caller, who would give back one of the new run.
  status_or_reason check_restart() const;

  bool none() const { return workers_.none(); }
  bool serves(std::uint32_t route) const { return route != function_index_view::kNone && workers_.serves(route); }
  /// Accepts a request. By the thread that reads the ring.
  void push(std::uint32_t slot, std::uint32_t route) { workers_.push(slot, route); }
  /// Requests wait for a worker.
  bool backlog() const { return workers_.backlog(); }
  /// A request waits for a worker, and later ones must not pass it.
  bool holds_intake() const { return when_busy_ == CUDAQ_BUSY_WORKERS_WAIT && backlog(); }
  /// Runs `body`, the dispatcher's loop, with the workers' device current.
  void run_on_device(const std::function<void()> &body) { workers_.launcher().run_on_device(body); }

  /// Handles what has ended and launches what can be launched. Returns the work count.
  std::uint32_t turn(thread_counters &here);
  /// After the intake: until everything accepted is answered. A dispatcher's own thread goes on until what runs has
  /// ended, as stop says when it is late and may be called again; a thread of the caller's returns after the grace
  /// period.
  void drain(bool own_thread, thread_counters &here);
  /// After the loop's thread has ended, by the one that waited for it: the same for what has ended since.
  void settle(thread_counters &here);

  // --- any thread ---

  /// The grace period is over: requests that wait for a worker are answered.
  void give_up() { give_up_.store(1); }
  /// A graph of the run has not ended.
  bool runs() const;
  /// The CUDA error that has ended this run's graphs for good, 0: none.
  int fault() const { return fault_.load(); }
  status_or_reason release_worker(int worker);
  status_or_reason worker_job(int worker, cudaq_host_job_t &out) const;
  /// A line for each worker.
  std::string describe() const;

private:
  std::uint32_t collect_ended(thread_counters &here);
  void launch(const graph_workers::start &what, thread_counters &here);
  std::uint32_t answer_failed_launches(thread_counters &here);
  void answer_failed_launch(const cudaq_host_job_t &job, int error, std::int32_t status, thread_counters &here);
  void graph_ended(std::uint32_t worker, const cudaq_host_job_t &job, thread_counters &here);
  void fail_waiting(std::int32_t status, thread_counters &here);
  void watch_for_fault(thread_counters &here);
  void fail_all(int error, thread_counters &here);
  status_or_reason check_worker(int worker) const;

  const job_responder &responder_;
  graph_workers workers_;
  job_table *jobs_ = nullptr; ///< of the run
  cudaq_busy_workers_t when_busy_ = CUDAQ_BUSY_WORKERS_WAIT;
  std::uint64_t grace_period_ns_ = 0;
  idle_strategy idle_{CUDAQ_WAIT_SPIN, 0};
  shared_word<std::uint32_t> give_up_;
  shared_word<int> fault_;

  static constexpr steady_clock::time_point kNotWatching{};
  steady_clock::time_point fault_watch_ = kNotWatching; ///< when the device is asked for its health next
  steady_clock::time_point ask_failed_;                 ///< when it is asked next what failed launches have left
};

} // namespace cudaq::realtime::detail
