// SPDX-License-Identifier: Apache-2.0
// The graph handlers of a host dispatcher. Requests wait in queues. In its turns the dispatcher's thread launches them
// on idle workers and handles graphs that have ended. For a slot, a graph is a handler that defers.
//
//   push (by the thread that reads the ring) -> turn: launch ... the graph has ended -> the job is answered or closed
//
// A worker with a hand_over_fn: if further requests wait, this thread only stages the request, or not even that
// (cudaq_hand_over_t), and a thread of the caller launches the graph. A later turn does the rest of the launch: until
// then the job is in phase running.
//
//   failure                   what happens
//   a launch fails            the request is answered after the work that its hooks have queued has ended
//   the device is lost        all pending requests are answered immediately
//   the grace period ends     waiting requests are answered; running graphs are waited for
#pragma once

#include "lib/base/runner.h"
#include "lib/host_dispatcher/graph_workers.h"
#include "lib/host_dispatcher/job_responder.h"

namespace cudaq::realtime::detail {

/// For the dispatcher's thread, except where "any thread" or another thread is stated.
class graph_path {
public:
  explicit graph_path(const job_responder &responder) : responder_(responder) {}

  /// Prepares a run with the routes of `index`, as graph_workers::reset. Not during a run.
  void reset(const std::vector<cudaq_host_worker_t> &workers, const function_index_view &index, job_table &jobs,
             const cudaq_dispatcher_options_t &options, std::shared_ptr<graph_launcher> launcher,
             shared_word<std::uint64_t> *idle_mask);
  /// Refuses a new run while the caller still has a worker of the last run: its release would hit the new run's worker.
  expected<> check_restart() const;

  bool none() const { return workers_.none(); }
  bool serves(std::uint32_t route) const { return route != function_index_view::kNone && workers_.serves(route); }
  /// Accepts a request. Only for the thread that reads the ring.
  void push(std::uint32_t slot, std::uint32_t route) { workers_.push(slot, route); }
  /// Requests wait for a worker.
  bool backlog() const { return workers_.backlog(); }
  /// A request waits for a worker, and later requests must not overtake it.
  bool holds_intake() const { return when_busy_ == CUDAQ_BUSY_WORKERS_WAIT && backlog(); }
  /// Runs `body`, the dispatcher's loop, with the workers' device current.
  void run_on_device(const std::function<void()> &body) { workers_.launcher().run_on_device(body); }

  /// Handles graphs that have ended and launches waiting requests on idle workers. Returns the work count.
  std::uint32_t turn(thread_counters &here);
  /// After the intake is closed: takes turns until all accepted requests are answered. With own_thread it continues
  /// until all graphs have ended; a stop that reaches its deadline reports this and may be called again. Otherwise (the
  /// loop runs on the caller's thread) it returns after the grace period.
  void drain(bool own_thread, thread_counters &here);
  /// After the end of the dispatcher's thread, called by the thread that joined it: handles graphs that have ended
  /// since.
  void collect_after_end(thread_counters &here);

  // --- any thread ---

  /// The grace period is over: requests that wait for a worker are answered SHUTTING_DOWN.
  void give_up() { give_up_.store(1); }
  /// A graph of the run has not ended.
  bool runs() const;
  /// The CUDA error that has ended all graphs of this run; 0: no error.
  int fault() const { return fault_.load(); }
  expected<> release_worker(int worker);
  expected<> worker_job(int worker, cudaq_host_job_t &out) const;
  /// Text for dump_state: one line for each worker.
  std::string describe() const;

private:
  std::uint32_t collect_ended(thread_counters &here);
  std::uint32_t collect_handed_over(thread_counters &here);
  bool should_hand_over(std::uint32_t worker) const;
  void launched(std::uint32_t worker, std::uint32_t slot, std::uint64_t generation, int error, thread_counters &here);
  void launch(const graph_workers::start &what, thread_counters &here);
  std::uint32_t answer_failed_launches(thread_counters &here);
  void answer_failed_launch(std::uint32_t worker, const cudaq_host_job_t &job, int error, std::int32_t status,
                            thread_counters &here);
  bool answered_by_worker(std::uint32_t worker, const cudaq_host_job_t &job) const;
  void graph_ended(std::uint32_t worker, const cudaq_host_job_t &job, thread_counters &here);
  void fail_waiting(std::int32_t status, thread_counters &here);
  void watch_for_fault(thread_counters &here);
  void fail_all(int error, thread_counters &here);
  expected<> check_worker(int worker) const;

  const job_responder &responder_;
  graph_workers workers_;
  job_table *jobs_ = nullptr; ///< of the run
  cudaq_busy_workers_t when_busy_ = CUDAQ_BUSY_WORKERS_WAIT;
  std::uint64_t grace_period_ns_ = 0;
  idle_strategy idle_{CUDAQ_WAIT_SPIN, 0};
  shared_word<std::uint32_t> give_up_;
  shared_word<int> fault_;

  static constexpr steady_clock::time_point kNotWatching{};
  steady_clock::time_point fault_watch_ = kNotWatching; ///< time of the next call of graph_launcher::fault
  steady_clock::time_point next_failure_check_;         ///< time of the next check of failed launches
};

} // namespace cudaq::realtime::detail
