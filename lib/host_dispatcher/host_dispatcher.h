// SPDX-License-Identifier: Apache-2.0
// The host dispatcher: one thread that reads the ring, and optionally a pool that runs handlers.
//
//             no pool                      pool                          shared ring
//   read      take_turn                    take_turn                     router.route, by whichever member has the role
//   serve     in the same turn             queue -> pool threads         queue -> own thread, or pool threads
//   answer    in the same turn             job_responder                 job_responder
//
// Graph handlers (graph_path.h) always go through a queue to the dispatcher's own thread, which launches them and
// handles their ends between the turns. To the slot they are handlers that defer.
//
// A deferred answer comes through complete_deferred, from a thread of the caller's.
#pragma once

#include "lib/base/runner.h"
#include "lib/host_dispatcher/graph_path.h"
#include "lib/host_dispatcher/handler_table.h"
#include "lib/host_dispatcher/work_queues.h"
#include "lib/shared_ring/ring_router.h"

namespace cudaq::realtime::detail {

inline constexpr std::uint32_t kMaxPoolThreads = 64;

/// Everything a run needs, validated.
struct host_setup {
  std::shared_ptr<job_table> jobs;
  std::shared_ptr<ring_router> router; ///< on a shared ring
  cudaq_function_table_t table{};
  std::vector<v2_handler> v2;
  std::vector<cudaq_host_worker_t> workers;
  std::shared_ptr<graph_launcher> launcher; ///< where there are workers
  cudaq_dispatcher_options_t options{};
  bool shared_ring = false;
  bool markers = true;
  volatile int *shutdown_flag = nullptr;
  std::uint64_t *stats = nullptr;
};

class host_dispatcher final : public ring_member {
public:
  /// Whether graph workers of the last run stand in the way of another one.
  status_or_reason check_restart() const { return graphs_.check_restart(); }
  /// Prepares a run; the counters go on from the last one.
  status_or_reason prepare(host_setup setup);
  /// Starts the threads. with_thread false: the pool only, the caller runs `loop` itself. On failure nothing runs.
  status_or_reason start(bool with_thread);
  /// Polls until the shutdown flag or request_stop, then closes the intake. Returns with the last turn.
  void loop();
  void request_stop() { stop_.store(1); }
  /// Waits for threads and accepted requests. False: a handler did not come back by the deadline; call again.
  /// Deferred requests that are still open then are answered CUDAQ_RPC_ERR_SHUTTING_DOWN.
  bool finish(steady_clock::time_point deadline);
  /// Gives up the ring of the last run; late completions of its jobs are still refused properly.
  void forget_ring() {
    setup_.jobs.reset();
    setup_.router.reset();
  }
  /// When everything accepted is answered: on a shared ring, gives up the membership. May be called again.
  void leave_ring();
  /// The loop has left its last turn, by stop or by the caller's flag. Any thread.
  bool loop_ended() const { return intake_closed_.load() != 0; }
  /// The calling thread is one of this dispatcher's, that is, the call comes from a handler.
  bool is_own_thread() const;

  /// One turn of the thread that reads the ring; returns its work count.
  std::uint32_t turn();

  /// A graph of the run has not ended. For the thread that finishes it.
  bool graph_runs() const { return graphs_.runs(); }
  /// The last finish did not come past the threads.
  bool threads_run() const { return threads_run_.load() != 0; }
  /// The CUDA error that has ended this run's graphs for good, 0: none. Any thread.
  int fault() const { return graphs_.fault(); }

  // Any thread, any time after prepare.
  status_or_reason release_worker(int worker) { return graphs_.release_worker(worker); }
  status_or_reason worker_job(int worker, cudaq_host_job_t &out) const { return graphs_.worker_job(worker, out); }

  /// Any thread, any time after prepare.
  status_or_reason complete_deferred(const cudaq_host_job_t &job, std::int32_t status, std::uint32_t result_len);

  void read_stats(cudaq_dispatcher_stats_t &out) const;
  /// Requests answered or disposed of, since construction.
  std::uint64_t processed() const;
  /// The value that *stats has or is about to have.
  std::uint64_t stats_value() const { return stats_base_.peek() + processed(); }
  /// Options of the last run, counters, threads, slots, as text. Not beside prepare().
  std::string describe() const;

  // --- ring_member, called by the thread that reads the ring ---
  const function_index_view &index() const override { return handlers_.index(); }
  const judge_rules &rules() const override { return handlers_.rules(); }
  bool is_default_owner() const override { return setup_.options.default_owner != 0; }
  void accept(std::uint32_t slot, const request &r, const judgement &what) override;
  thread_counters &shared_counters() override { return counters_[kSharedCounters]; }

  // --- Server of take_turn ---
  bool no_job(std::uint32_t i) const { return !tracks_jobs_ || (*setup_.jobs)[i].state.phase() == job_phase::open; }
  bool may_take(std::uint32_t i);
  void note_taken(std::uint32_t i, const request &r, bool expected_flag);
  void note_dropped(verdict why);
  void note_refused();
  void note_answered(std::int32_t status);
  handler_result serve(std::uint32_t i, const request &r, std::uint32_t route);

private:
  static constexpr std::uint32_t kSharedCounters = 0, kLoopCounters = 1, kFirstPoolCounters = 2;
  static constexpr std::uint32_t kBatch = 32;        ///< slots per turn at most
  static constexpr std::uint32_t kResyncTurns = 256; ///< empty turns between looks over the whole ring

  static std::vector<thread_counters> make_counters();
  bool shared() const { return setup_.shared_ring; }
  status_or_reason start_threads(bool with_thread);
  void abandon_start();
  void wait_for_go() const;
  bool stop_requested() const { return stop_.load() != 0 || load_acquire(*setup_.shutdown_flag) != 0; }
  bool stop_seen();
  void learn_collected();
  void idle_turn();
  /// Takes one request from the queues and sees it through: a turn of a pool thread. Returns its work count.
  std::uint32_t serve_queued(thread_counters &here);
  std::string describe_options() const;
  void write_record(job_record &record, const request &r, const judgement &what, bool marked);
  void run_job(std::uint32_t slot, thread_counters &here);
  void close_intake();
  bool has_jobs() const;
  bool in_handler() const;
  void give_up_deferred_jobs();
  thread_placement placement(int core) const;

  host_setup setup_;
  handler_table handlers_;
  work_queues queues_;
  std::vector<thread_counters> counters_ = make_counters();
  job_responder responder_{handlers_, counters_[kSharedCounters]};
  graph_path graphs_{responder_};
  shared_word<job_table *> jobs_;                                ///< for calls from other threads; set by prepare
  shared_word<std::uint32_t> max_result_len_;                    ///< the same
  shared_word<std::uint32_t> counters_used_{kFirstPoolCounters}; ///< largest number so far: counters outlive a run
  bool queued_ = false;                                          ///< requests go through the queues
  bool own_thread_ = false;                                      ///< the loop runs on a thread of this object's
  bool tracks_jobs_ = false; ///< slots have job records; otherwise every request is answered within its turn
  shared_word<std::uint64_t> stats_base_; ///< what *stats held before this dispatcher counted

  loop_thread thread_;
  std::array<loop_thread, kMaxPoolThreads> pool_;
  enum class gate : std::uint32_t { closed, open, abandoned };
  shared_word<gate> gate_; ///< threads wait here until all of them are there and the ring is joined
  shared_word<std::uint32_t> stop_;
  shared_word<std::uint32_t> intake_closed_; ///< nothing is accepted any more; the pool ends when it has drained

  // Of the thread that reads the ring.
  std::uint32_t polls_ = 0;
  std::uint32_t empty_turns_ = 0;
  shared_word<std::uint32_t> threads_run_;
  std::uint32_t busy_slot_ = function_index_view::kNone;
  std::uint32_t collected_slot_ =
      function_index_view::kNone; ///< the next slot, if its last answer is known to be taken
};

} // namespace cudaq::realtime::detail
