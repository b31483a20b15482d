// SPDX-License-Identifier: Apache-2.0
// The pipeline behind its public class: wiring, threads, drain. Loop bodies are turns: stage_worker.h, completions.h.
#pragma once

#include "lib/base/runner.h"
#include "lib/qec/pipeline/completions.h"
#include "lib/qec/pipeline/stage_engine.h"
#include "lib/qec/pipeline/stage_worker.h"

#include <deque>
#include <memory>
#include <mutex>
#include <string>

namespace cudaq::qec::realtime::detail {

class pipeline_core {
public:
  explicit pipeline_core(const experimental::pipeline_stage_config &config);
  ~pipeline_core();
  pipeline_core(const pipeline_core &) = delete;
  pipeline_core &operator=(const pipeline_core &) = delete;

  // As the public class says, with its exceptions.
  void set_gpu_stage(experimental::gpu_stage_factory factory);
  void set_cpu_stage(experimental::cpu_stage_callback callback);
  void set_completion_handler(experimental::completion_callback handler);
  void start();
  void stop();
  experimental::stop_report last_stop() const;
  std::string dump() const;
  void complete_deferred(int slot, const std::size_t *size, int status);
  bool complete_deferred(int slot, std::uint64_t generation, std::size_t size, int status);

  /// False: a thread of ours is stuck in a callback, and what it uses must stay.
  bool ended() const;
  pipeline_ring &ring() { return ring_; }
  const pipeline_ring &ring() const { return ring_; }
  std::uint64_t completed() const { return completions_.completed(); }
  cudaq_dispatcher_stats_t dispatcher_stats() const;
  /// How threads of this pipeline wait, its injectors' too.
  cudaq::realtime::detail::idle_strategy idle() const { return {wait_, kBlockIntervalNs}; }

private:
  enum class run_state { created, starting, running, stopped, stuck };

  struct worker_thread {
    std::unique_ptr<stage_worker> turns;
    cudaq::realtime::detail::loop_thread thread;
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
  bool stop_dispatcher(std::uint64_t timeout_ns, experimental::stop_report &report);
  int join_workers(time_point deadline, experimental::stop_report &report);
  bool answers_are_told(experimental::stop_report &report);
  void end_consumer(experimental::stop_report &report);
  static request_phase take_back(request_record &record);
  void take_back_open_requests();
  void publish(const experimental::stop_report &report, run_state state);

  request_record &record_to_complete(int slot, int status);
  bool answer_claimed(int slot, std::uint64_t generation, const std::size_t *size, int status);

  static constexpr std::uint64_t kBlockIntervalNs = 500000;

  experimental::pipeline_stage_config config_;
  cudaq_wait_policy_t wait_;
  pipeline_ring ring_;
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
  std::uint64_t lost_reported_ = 0;              ///< completions, by stops so far
  alignas(64) in_flight_completions completers_; ///< calls of complete_deferred

  std::mutex control_;       ///< held by start and stop
  mutable std::mutex shape_; ///< guards what is below, for reports during a start or stop
  std::deque<worker_thread> workers_;
  run_state state_ = run_state::created;
  experimental::stop_report report_;
};

} // namespace cudaq::qec::realtime::detail
