// SPDX-License-Identifier: Apache-2.0
// The implementation of the public pipeline class: wiring, threads, drain. Loop bodies are turns (stage_worker.h,
// completions.h).
//
// Life of one request: one syndrome with ticket 13, request id 1000 and 42 bytes, on the pipeline's own ring of 8
// slots. The GPU stage is a graph with a ready flag (notified mode). Worker 0 is idle and has had 3 launches. The
// dispatcher gives the request generation 7. `state` is request_record::state of slot 5; `job` is the dispatcher's
// record of it.
//
//   thread      step            function                     words after it
//               before                                       next ticket 13. Slot 5: admitted_ticket 13, rx 0, tx 0,
//                                                            state {6, none}
//   injector    ticket, slot    pipeline_ring::submit        next ticket 14; slot is 13 mod 8 = 5
//               request         pipeline_ring::submit        record: request_id 1000, error 0; frame in rx slot 5
//               signal          pipeline_ring::submit        submitted + 1, then rx = address of the slot
//   dispatcher  accept          host_dispatcher::accept      job {7, queued}
//               mark            graph_path::launch           job {7, running}; tx = IN_FLIGHT
//               give the slot   graph_workers::begin         job of graph worker 0: slot 5, generation 7, request 1000
//                               cuda_graph_launcher::launch  io context, if the worker has one: rx slot, tx slot and tx
//                                                            flag of slot 5
//               before launch   graph_engine::before_launch  record: payload_size 42; worker 0: launch {4, begun}
//               after launch    graph_engine::after_launch   worker 0: launch {4, launched}
//               deferred        graph_path::launched         rx = 0; job {7, deferred}
//   worker 0    take            graph_engine::take           cudaq_host_worker_job: slot 5, generation 7;
//                                                            launch {4, none}; state {7, held}
//                               stage_worker::begin          phase_ launched
//   GPU         output          the graph's last kernel      gpu_output, then ready_flag 1
//   worker 0    ready           stage_worker::is_ready       ready_flag 2; phase_ ready
//               CPU stage       stage_worker::run_cpu_stage  state {7, completable}; 16 bytes in response_buffer
//               own the answer  claim_answer                 state {7, none}
//               answer          responder::complete          cudaq_host_complete_deferred writes the response header,
//                                                            then tx = address of the slot, job {8, open}
//               free worker     stage_worker::done           ready_flag 0; phase_ idle; graph_engine::release lets
//                                                            the dispatcher launch worker 0 again
//   consumer    completion      completions::collect         handler gets {1000, slot 5, success}; completed + 1
//               free slot       pipeline_ring::collect       tx = 0, then admitted_ticket 21
//
// Variants:
//   host stage     host_engine::accept runs on the dispatcher's thread, as a v2 handler that defers: state {7, held},
//                  and slot 5 in the queue of its function. No marker: rx stays set until the answer. The worker runs
//                  the stage in stage_worker::launch.
//   backlog        After "before launch" the dispatcher finds that further requests wait: graph_engine::hand_over
//                  stores the launch for worker 0, which makes it in graph_engine::launch_handed_over and counts it.
//                  The row "deferred" follows in a later turn of the dispatcher. With pre_launch_on_worker hand_over
//                  does what before_launch does, except for the hook, which worker 0 calls in launch_handed_over.
//   no CPU stage   Graphs: no worker has a thread, the dispatcher publishes the graph's frame. Host stages: the worker
//                  answers with the stage's result.
//   deferred       The CPU stage returns DEFERRED_COMPLETION: the state stays {7, completable}, and the worker is free.
//                  The thread that calls complete_deferred takes the state to {7, none} and answers.
//   poll mode      The CPU stage returns 0, no answer yet: state {7, held} until the worker calls it again.
//   early answer   Worker 0 answers before the row "deferred": job {7, storing_completion}, then {7,
//                  completion_stored}. The dispatcher publishes when graph_engine::after_launch has returned. (If the
//                  worker is still storing its answer then, the job is {7, completer_publishes}, and the worker
//                  publishes.)
//   external ring  No ticket; request_id is the frame's. responder::complete notifies the consumer with
//                  completions::enqueue. The ring's own consumer collects the tx flag.
//   stop           1. External ring: shutdown_ is 1, and the dispatcher accepts no more requests. Requests may finish
//                     during the grace period.
//                  2. If some have not, give_up is 1: a worker whose stage is not ready takes the state from held to
//                     none and answers SHUTTING_DOWN. It takes no request before that stage has ended. After kEndTime
//                     give_up_requests takes each open state from held to none, or from completable to given_up, and
//                     answers SHUTTING_DOWN. So a worker whose GPU stage returns now calls no CPU stage, and a late
//                     complete_deferred has no effect.
//                  3. The dispatcher stops. It answers SHUTTING_DOWN to requests that wait for a graph worker, and,
//                     after the last graph has ended, to jobs that are still deferred. give_up_requests queues the
//                     completions of these.
//                  4. The workers end, then the consumer. On an external ring a hook may have held the dispatcher so
//                     long that a worker ended at an earlier stop, before its launch: this stop queues the completion.
//                  One claim of the state succeeds, and one of the job: no request is answered twice.
//
// Threads. Graph workers have a thread only if there is a CPU stage.
//
//   thread        started by        owns                            waits                 ends
//   dispatcher    start_dispatcher  ring cursor, jobs; calls hooks  wait policy wait_     stop_dispatcher
//   qec-worker-i  start_threads     a request for each of its       run_loop with idle()  workers_end_ is 1, and it has
//                                   buffers, from take() to the                           no request
//                                   answer; their ready flags
//   qec-consumer  start_threads     tx to 0, admitted_ticket;       run_loop with idle()  consumer_ends_ is 1, with
//                                   calls the completion handler                          nothing to collect
//   injectors     the program       the slot of a drawn ticket      submit: idle()        submit returns, or throws if
//                                   until rx is set                                       closed
//   completers    the program       the request they claimed        never                 complete_deferred returns
//   start, stop   the program       control_, state_                with deadlines        the call returns
#pragma once

#include "lib/base/runner.h"
#include "lib/qec/pipeline/completions.h"
#include "lib/qec/pipeline/stage_engine.h"
#include "lib/qec/pipeline/stage_worker.h"
#include "lib/qec/pipeline/stop_text.h"

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace cudaq::qec::realtime::detail {

class pipeline_core {
public:
  explicit pipeline_core(const experimental::pipeline_stage_config &config);
  ~pipeline_core();
  pipeline_core(const pipeline_core &) = delete;
  pipeline_core &operator=(const pipeline_core &) = delete;

  // As the public class documents them, with its exceptions.
  void set_gpu_stage(experimental::gpu_stage_factory factory);
  void set_cpu_stage(experimental::cpu_stage_callback callback);
  void set_completion_handler(experimental::completion_callback handler);
  void start();
  void stop();
  experimental::stop_report last_stop() const;
  std::string dump() const;
  void complete_deferred(int slot, const std::size_t *size, int status);
  bool complete_deferred(int slot, std::uint64_t generation, std::size_t size, int status);

  /// False: a thread of the pipeline is stuck in a callback, and the memory it uses must stay.
  bool ended() const;
  pipeline_ring &ring() { return ring_; }
  const pipeline_ring &ring() const { return ring_; }
  std::uint64_t completed() const { return completions_.completed(); }
  cudaq_dispatcher_stats_t dispatcher_stats() const;
  /// How all threads of this pipeline wait, injectors included.
  cudaq::realtime::detail::idle_strategy idle() const { return {wait_, kBlockIntervalNs}; }

private:
  enum class run_state { created, starting, running, stopped, stuck };

  /// A thread and its buffers, a stage_worker for each.
  struct worker_thread {
    std::vector<std::unique_ptr<stage_worker>> buffers;
    cudaq::realtime::detail::loop_thread thread;

    std::uint32_t turn();
    bool idle() const;
    const stage_worker &busiest() const;
  };

  /// What a stop has found. As stop_report, but needs no allocation.
  struct stop_findings {
    std::uint64_t given_up = 0, left_over = 0;
    int stuck_threads = 0;
    stop_text text;
  };

  using time_point = cudaq::realtime::detail::steady_clock::time_point;

  void create_dispatcher();
  void require_configurable(const char *call) const;
  run_state exchange_state(run_state to);
  void start_all();
  std::vector<experimental::gpu_worker_resources> make_resources() const;
  void start_threads(const std::vector<experimental::gpu_worker_resources> &resources);
  void start_dispatcher();
  void end_after_failed_start() noexcept;
  void refuse_from_callback(const char *call) const;
  bool is_stuck() const;

  bool drain(time_point deadline);
  bool run_ends(time_point deadline);
  bool stop_dispatcher(std::uint64_t timeout_ns, stop_findings &found);
  int join_workers(time_point deadline, bool dispatcher_stopped, stop_findings &found);
  bool answers_are_queued(stop_findings &found);
  void end_consumer(stop_findings &found);
  void end_stages(stop_findings &found);
  bool has_open_requests() const;
  void give_up_requests();
  void set_state(const stop_findings &found, run_state state);

  request_state &state_to_complete(int slot, int status);
  bool answer_claimed(int slot, std::uint64_t generation, const std::size_t *size, int status);

  static constexpr std::uint64_t kBlockIntervalNs = 500000;

  experimental::pipeline_stage_config config_;
  pipeline_ring ring_; ///< checks the configuration
  cudaq_wait_policy_t wait_;
  cudaq_dispatch_manager_t *manager_ = nullptr;
  cudaq_dispatcher_t *dispatcher_ = nullptr;
  volatile int shutdown_ = 0;
  std::uint64_t processed_ = 0;

  experimental::gpu_stage_factory factory_;
  experimental::cpu_stage_callback cpu_stage_;
  experimental::completion_callback handler_;

  completions completions_;
  responder responder_;
  std::unique_ptr<stage_engine> engine_;
  cudaq::realtime::detail::loop_thread consumer_;
  shared_word<std::uint32_t> workers_end_, consumer_ends_;
  std::uint64_t lost_reported_ = 0;                     ///< lost completions that stops have reported
  alignas(64) in_flight_completions<false> completers_; ///< running calls of complete_deferred

  std::mutex control_;       ///< held by start and stop
  mutable std::mutex shape_; ///< guards the members below, for reports during a start or stop
  std::deque<worker_thread> workers_;
  run_state state_ = run_state::created;
  stop_findings last_stop_;
};

} // namespace cudaq::qec::realtime::detail
