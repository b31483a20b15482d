// SPDX-License-Identifier: Apache-2.0
// The engine with a GPU. Workers are graph workers of the host dispatcher, which launches their graphs. The
// dispatcher calls hooks around each launch, and after_launch notifies the worker's thread. The worker's ready flag
// reports the end of the graph (in poll mode: the CPU stage's result).
//
// If further requests wait, the dispatcher calls only the pre-launch hook and hands the launch over to the worker's
// thread. So the hooks stay on one thread, and the launches of several workers run at the same time. With
// pre_launch_on_worker it hands over the hook, too.
//
// Without a CPU stage the dispatcher publishes the graph's response, and the workers have no threads.
#pragma once

#include "lib/qec/pipeline/stage_engine.h"
#include "lib/qec/pipeline/stage_worker.h"

#include <deque>

namespace cudaq::qec::realtime::detail {

class graph_engine final : public stage_engine {
public:
  graph_engine(pipeline_ring &ring, responder &to, const std::vector<experimental::gpu_worker_resources> &workers,
               bool with_cpu_stage, bool workers_may_launch);

  void wire(cudaq_dispatcher_t *dispatcher) override;
  void unwire(cudaq_dispatcher_t *dispatcher) noexcept override;
  void begin_stages() override {}
  int end_stages() noexcept override;
  void report_late_launch(int worker) noexcept override;
  bool has_threads() const override { return with_cpu_stage_; }
  bool has_handed_over(int worker) noexcept override;
  void launch_handed_over(int worker) noexcept override;
  bool take(int worker, std::uint32_t &slot) override;
  stage_launch launch(int, std::uint32_t) noexcept override { return {}; }
  stage_condition check_stage(int worker, std::uint64_t generation) noexcept override;
  bool release(int worker, stage_end stage) noexcept override;
  bool leave(int worker) noexcept override;

private:
  /// The last launch of a worker: its number, and who acts next.
  ///
  ///   none -> begun      before_launch
  ///   begun -> launched  the thread that has launched; it also publishes the writes of the hooks
  ///   launched -> none   the worker's thread takes the request; or, after the end of that thread, a stop does
  ///   either -> none     the dispatcher has answered the request: one thread reports that
  enum class launch_phase : std::uint64_t { none, begun, launched };
  using launch_word = cudaq::realtime::detail::generation_word<launch_phase>;
  static_assert(launch_word::fits(launch_phase::launched));

  /// The dispatcher's thread calls the hooks.
  struct alignas(64) worker {
    worker(graph_engine &of, int number, const experimental::gpu_worker_resources &with)
        : engine(of), id(number), resources(with) {}
    graph_engine &engine;
    const int id;
    const experimental::gpu_worker_resources resources;
    launch_word launch; ///< the last launch
    bool armed = false; ///< arm() has been called for a launch whose hook is handed over; with `handed`
    enum class offer : std::uint32_t { none, made, closed };
    shared_word<offer> handed;                  ///< a launch for the worker's thread; closed: the thread has ended
    cudaq_host_launch_fn_t handed_fn = nullptr; ///< of that offer
    void *handed_data = nullptr;
    shared_word<std::uint32_t> slot, request_id; ///< of the last launch; external rings only
    bool kept = false;                           ///< not released to the dispatcher: its graph may still run
  };
  static void before_launch(void *self, void *slot_dev, cudaStream_t stream);
  static void after_launch(void *self, void *slot_dev, cudaStream_t stream);
  static int hand_over(void *self, cudaq_host_launch_fn_t launch, void *launch_data) noexcept;
  static void count_launch(worker &w);
  void arm(worker &w, std::uint32_t slot);
  std::uint32_t slot_at(const void *slot_dev) const;
  void report_answered(worker &w, launch_word::snapshot seen);
  bool has_job(const worker &w, cudaq_host_job_t &job) const;

  pipeline_ring &ring_;
  responder &responder_;
  std::deque<worker> workers_;
  const bool with_cpu_stage_, workers_may_launch_;
  cudaq_dispatcher_t *dispatcher_ = nullptr;
};

} // namespace cudaq::qec::realtime::detail
