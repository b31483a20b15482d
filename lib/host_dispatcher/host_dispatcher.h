// SPDX-License-Identifier: Apache-2.0
// The host dispatcher: one thread that reads the ring, and optionally a pool that runs handlers.
//
//             no pool                      pool                          shared ring
//   read      take_turn                    take_turn                     router.route, by the member that has the role
//   serve     in the same turn             queue -> pool threads         queue -> dispatcher thread, or pool threads
//   answer    in the same turn             job_responder                 job_responder
//
// With a provider's dataplane instead of a ring (cpu_dataplane.h), rx_poll tells which slot to read, and an answered
// slot is sent in a later step of the same thread. The rest is as with a ring that is not shared.
//
// Requests for graphs (graph_path.h) always go through a queue to the dispatcher thread, which launches the graphs in
// its turns and handles their ends. For the slot they are handlers that defer.
//
// Threads
//
// dispatcher thread, "cudaq-dispatch", one
//   started by  start(true). After start(false) the caller's thread runs loop() itself (cudaq_host_dispatcher_loop).
//   owns        The cursor (on a shared ring: while it has the router role), graph_path, counters_[kLoopCounters].
//   waits       wait_for_go() until all threads run and the ring is joined; idle_strategy after a turn without work.
//   ends        When stop_seen() is true after a turn: it closes the intake, serves the accepted requests and drains
//               the graphs. On a shared ring it then waits until its deferred jobs are answered, or until request_stop,
//               and leaves the ring if no job is open.
// pool threads, "cudaq-pool-0" and so on, options.handler_pool_size of them
//   started by  start(), before the dispatcher thread.
//   owns        The request that it has popped; with FIFO ordering also that function's queue; its counters_ entry.
//   waits       Like the dispatcher thread.
//   ends        When the intake is closed and the queues are empty.
// thread that completes a deferred request: any thread of the caller
//   started by  The caller. It calls complete_deferred, also while the handler still runs.
//   owns        The job, from its claim to the publication of the answer.
//   waits       Never.
//   ends        The call returns when the answer is published, or stored for the thread that still runs the handler.
// thread that stops: the caller's, in finish()
//   owns        After it has joined the other threads: all jobs that are left.
//   waits       wait_until, with a deadline, for the threads, for running graphs and for deferred requests.
//
// A handler, a hook or a function of a dataplane that ends its thread ends the process (lib/base/callback.h).
#pragma once

#include "lib/base/runner.h"
#include "lib/host_dispatcher/cpu_dataplane.h"
#include "lib/host_dispatcher/graph_path.h"
#include "lib/host_dispatcher/handler_table.h"
#include "lib/host_dispatcher/used_jobs.h"
#include "lib/host_dispatcher/work_queues.h"
#include "lib/shared_ring/ring_router.h"

#include <optional>

namespace cudaq::realtime::detail {

inline constexpr std::uint32_t kMaxPoolThreads = 64;

/// Everything that a run needs. Validated by the caller.
struct host_setup {
  std::shared_ptr<job_table> jobs;
  std::shared_ptr<ring_router> router; ///< on a shared ring
  cudaq_function_table_t table{};
  std::vector<v2_handler> v2;
  std::vector<cudaq_host_worker_t> workers;
  std::shared_ptr<graph_launcher> launcher; ///< if there are workers
  cudaq_dispatcher_options_t options{};
  std::optional<cudaq_cpu_dataplane_t> dataplane; ///< jobs->ring then has flags of the library's own
  std::uint32_t max_result_bytes = 0;             ///< 0: as many as a slot holds
  bool shared_ring = false;
  bool markers = true;
  bool handler_times = false; ///< recorded
  volatile int *shutdown_flag = nullptr;
  std::uint64_t *stats = nullptr;
  shared_word<std::uint64_t> *idle_mask = nullptr; ///< the caller's word for graph workers; NULL: the library's own
};

class host_dispatcher final : public ring_member {
public:
  /// Refuses a new run while the caller still has a graph worker of the last one.
  expected<> check_restart() const { return graphs_.check_restart(); }
  /// Prepares a run. The counters keep their values from the last run.
  expected<> prepare(host_setup setup);
  /// Starts the threads. with_thread false: only the pool; the caller runs `loop` itself. On failure no thread runs.
  expected<> start(bool with_thread);
  /// Takes turns until the shutdown flag is set or request_stop is called, then closes the intake and serves the
  /// accepted requests.
  void loop();
  void request_stop() { stop_.store(1); }
  /// Waits until the threads have ended and all accepted requests are answered. Deferred requests that are open at the
  /// deadline are answered CUDAQ_RPC_ERR_SHUTTING_DOWN. False: at the deadline a thread has not ended (a handler has
  /// not returned, for example), a graph still runs, or a completion is not published; call again.
  bool finish(steady_clock::time_point deadline);
  /// Releases the references to the ring of the last run, after the calls of other threads that use them have ended.
  /// Late completions of its jobs are refused. Not during a run.
  void release_ring();
  /// Leaves a shared ring, after all accepted requests are answered. Otherwise no effect. May be called again.
  void leave_ring();
  /// True if the loop has ended its last turn, after stop or because of the caller's flag. Any thread.
  bool loop_ended() const { return intake_closed_.load() != 0; }
  /// True if also all threads have ended and all accepted requests are answered. Any thread.
  bool ended() const;
  /// True if the calling thread runs this dispatcher's handlers: the call comes from a handler or a hook.
  bool is_own_thread() const;

  /// One turn of the dispatcher thread. Returns its work count.
  std::uint32_t turn();

  /// True if a graph of the run has not ended. For the thread that finishes the run.
  bool graph_runs() const { return graphs_.runs(); }
  /// True if the last finish ended because threads still ran.
  bool threads_run() const { return threads_run_.load() != 0; }
  /// The CUDA error that has ended all graphs of this run; 0: no error. Any thread.
  int fault() const { return graphs_.fault(); }

  // Any thread, any time after prepare.
  expected<> release_worker(int worker) { return graphs_.release_worker(worker); }
  expected<> worker_job(int worker, cudaq_host_job_t &out) const { return graphs_.worker_job(worker, out); }

  /// Any thread, any time after prepare.
  expected<> complete_deferred(const cudaq_host_job_t &job, std::int32_t status, std::uint32_t result_len);

  void read_stats(cudaq_dispatcher_stats_t &out) const;
  /// Not during prepare().
  expected<> read_times(std::uint32_t function_id, cudaq_handler_times_t &out) const {
    return times_.read(function_id, counters_, out);
  }
  /// Requests answered or dropped since construction.
  std::uint64_t processed() const;
  /// The value that *stats has, or will have after the present turn.
  std::uint64_t stats_value() const { return stats_base_.peek() + processed(); }
  /// Options of the last run, counters, threads and slots as text. Not during prepare().
  std::string describe() const;

  // --- ring_member, called by the thread that reads the ring ---
  const function_index_view &index() const override { return handlers_.index(); }
  const judge_rules &rules() const override { return handlers_.rules(); }
  bool is_default_owner() const override { return setup_.options.default_owner != 0; }
  void accept(std::uint32_t slot, const request &r, const judgement &what) override;
  thread_counters &shared_counters() override { return counters_[kSharedCounters]; }

  // --- Server of take_turn ---
  bool no_job(std::uint32_t i) const {
    return tracks_jobs_.peek() == 0 || (*setup_.jobs)[i].state.phase() == job_phase::open;
  }
  bool may_take(std::uint32_t i);
  void note_taken(std::uint32_t i, const request &r, bool expected_flag);
  void note_dropped(verdict why);
  void note_refused();
  void note_answered(std::int32_t status);
  handler_result serve(std::uint32_t i, const request &r, std::uint32_t route);

private:
  static constexpr std::uint32_t kSharedCounters = 0, kLoopCounters = 1, kFirstPoolCounters = 2;
  static constexpr std::uint32_t kBatch = 32;        ///< slots per turn at most
  static constexpr std::uint32_t kResyncTurns = 256; ///< empty turns between two looks over the ring

  static std::vector<thread_counters> make_counters();
  bool shared() const { return setup_.shared_ring; }
  bool has_dataplane() const { return setup_.dataplane.has_value(); }
  expected<> start_threads(bool with_thread);
  void abandon_start();
  void wait_for_go() const;
  bool stop_requested() const { return stop_.load() != 0 || load_acquire(*setup_.shutdown_flag) != 0; }
  bool stop_seen();
  std::uint32_t dataplane_turn(thread_counters &here);
  void learn_collected();
  void idle_turn();
  /// Serves one request from the queues: a turn of a pool thread. Returns its work count.
  std::uint32_t serve_queued(thread_counters &here);
  std::string describe_options() const;
  void write_record(job_record &record, const request &r, const judgement &what, bool marked);
  void run_job(std::uint32_t slot, thread_counters &here);
  void close_intake();
  void serve_pool(thread_counters &here);
  bool has_jobs() const;
  std::uint64_t jobs_opened_minus_closed() const;
  bool in_handler() const;
  void give_up_deferred_jobs();
  thread_placement placement(int core) const;

  host_setup setup_;
  handler_table handlers_;
  work_queues queues_;
  std::vector<thread_counters> counters_ = make_counters();
  handler_times times_;
  job_responder responder_{handlers_, times_, counters_[kSharedCounters]};
  graph_path graphs_{responder_};
  cpu_dataplane dataplane_;                                      ///< used if has_dataplane()
  used_jobs jobs_;                                               ///< for calls from other threads; set by prepare
  shared_word<std::uint32_t> max_result_len_;                    ///< the same
  shared_word<std::uint32_t> counters_used_{kFirstPoolCounters}; ///< largest number so far; counters outlive a run
  bool queued_ = false;                                          ///< requests go through the queues
  bool own_thread_ = false;                                      ///< the loop runs on thread_
  shared_word<std::uint32_t> tracks_jobs_; ///< 1: slots use job records; 0: a request is answered within its turn
  shared_word<std::uint64_t> stats_base_;  ///< value of *stats before this dispatcher counted
  shared_word<std::uint64_t> jobs_base_;   ///< jobs_opened_minus_closed() at prepare, when no job was open

  loop_thread thread_;
  std::array<loop_thread, kMaxPoolThreads> pool_;
  enum class gate : std::uint32_t { closed, open, abandoned };
  shared_word<gate> gate_;                   ///< threads wait until all of them run and the ring is joined
  shared_word<std::uint32_t> stop_;          ///< 1: request_stop was called
  shared_word<std::uint32_t> intake_closed_; ///< 1: no request is accepted; the pool ends when the queues are empty

  // For the dispatcher thread, except threads_run_, which finish sets.
  std::uint32_t polls_ = 0;
  std::uint32_t empty_turns_ = 0;
  shared_word<std::uint32_t> threads_run_;
  std::uint32_t busy_slot_ = function_index_view::kNone;
  /// The slot at the cursor, if its last answer is known to be collected.
  std::uint32_t collected_slot_ = function_index_view::kNone;
  std::uint64_t taken_at_ = 0; ///< when the flag of the present request was seen, in ticks of times_
  /// Route of a request that is answered in its turn and whose time is recorded; else kNone.
  std::uint32_t timed_route_ = function_index_view::kNone;
};

} // namespace cudaq::realtime::detail
