// SPDX-License-Identifier: Apache-2.0
// One worker, or one buffer of a worker that has several: takes a request, runs the GPU stage, waits until its output
// is ready, runs the CPU stage, answers. The buffers of a worker take their turns on its thread.
#pragma once

#include "lib/base/runner.h"
#include "lib/qec/pipeline/completions.h"
#include "lib/qec/pipeline/response_frame.h"
#include "lib/qec/pipeline/stage_engine.h"

#include <array>
#include <string>

namespace cudaq::qec::realtime::detail {

/// Counts running calls that answer requests: from before they claim a request until the consumer is notified. A thread
/// that waits for their end makes sure first that there is nothing left to claim. kOneThread: one thread makes them.
template <bool kOneThread>
class in_flight_completions {
public:
  bool none() const {
    const std::uint64_t ended = ended_.value();
    return begun_.value() == ended;
  }

  /// One such call, while this object lives.
  class one {
  public:
    explicit one(in_flight_completions &of) : of_(of) { count(of_.begun_); }
    ~one() { count(of_.ended_); }
    one(const one &) = delete;
    one &operator=(const one &) = delete;

  private:
    in_flight_completions &of_;
  };

private:
  static void count(counter &n) { kOneThread ? n.bump() : n.add(); }
  counter begun_, ended_;
};

/// Answers requests, for all workers and for deferred completions.
class responder {
public:
  responder(pipeline_ring &ring, completions &to) : ring_(ring), completions_(to) {}
  void set_dispatcher(cudaq_dispatcher_t *dispatcher) { dispatcher_ = dispatcher; }

  /// Answers a request that the caller has claimed (its phase is none, or given up by a stop). False: the dispatcher
  /// has answered it before, because of a stop or a fault of the device.
  bool complete(std::uint32_t slot, std::uint64_t generation, const answer &response);

  /// A worker's request that the dispatcher has answered with an error.
  void report_device_fault(const answered_request &queued);
  /// The same for a launch that no worker has taken. Called from any thread; does not wait.
  void failed_launch(const answered_request &queued);
  /// External rings: a request that no worker has taken, and that the dispatcher has answered because of a stop. At
  /// most one for each worker.
  void report_given_up(const answered_request &queued);

  /// A worker may take a request. taken() is called for each request that leaves its queue.
  bool may_take() const { return !ring_.external() || completions_.has_room() || give_up.load() != 0; }
  void taken() {
    if (ring_.external())
      completions_.expect();
  }

  /// 1: workers answer SHUTTING_DOWN to each request that they take, and to requests whose stage is not ready or whose
  /// CPU stage has no answer yet (poll mode).
  shared_word<std::uint32_t> give_up;
  counter stage_errors, callback_errors, answered_twice;
  /// Keeps the first text, cut to the size of its buffer. Called from any thread.
  void note(const char *what) noexcept;
  /// The first text, or an empty string.
  std::string first_note() const;

private:
  pipeline_ring &ring_;
  completions &completions_;
  cudaq_dispatcher_t *dispatcher_ = nullptr;
  shared_word<std::uint32_t> noted_; ///< 0: no text, 1: being written, 2: complete
  std::array<char, 256> note_{};
};

class stage_worker {
public:
  stage_worker(int id, const experimental::gpu_worker_resources &resources, stage_engine &engine, pipeline_ring &ring,
               const experimental::cpu_stage_callback &cpu_stage, responder &to);

  /// Returns 0 if there was nothing to do or the stage is not ready.
  std::uint32_t turn();
  /// The worker has no request. Called on the worker's thread.
  bool idle() const { return phase_ == phase::idle || phase_ == phase::abandoned; }

  /// For reports: the present activity of the worker, in slot().
  enum class activity : std::uint32_t { idle, launch, gpu_stage, waiting, cpu_stage };
  activity doing() const { return static_cast<activity>(doing_.peek()); }
  std::uint32_t slot() const { return slot_seen_.peek(); }
  int id() const { return id_; }
  using in_flight_answers = in_flight_completions<true>;
  const in_flight_answers &in_flight() const { return in_flight_; }

private:
  /// abandoned: the request is answered, but its stage may still run.
  enum class phase { idle, launched, ready, abandoned };
  bool begin();
  stage_launch launch();
  bool is_ready();
  bool answer_ready();
  bool run_cpu_stage();
  void threw(const char *what);
  bool claim_answer();
  template <class Response>
  void finish(const Response &make_response, stage_end stage);
  void finish_stage(std::size_t size);
  void finish_early(const answer &response, stage_end stage);
  void done(stage_end stage);
  stage_end stage_now() const { return phase_ == phase::ready ? stage_end::ended : stage_end::may_run; }
  bool check_is_due();
  bool drop_lost_stage();
  void show(activity what) { doing_.set(static_cast<std::uint32_t>(what)); }

  const int id_;
  const experimental::gpu_worker_resources resources_;
  stage_engine &engine_;
  pipeline_ring &ring_;
  const experimental::cpu_stage_callback &cpu_stage_;
  responder &responder_;

  phase phase_ = phase::idle;
  std::uint32_t slot_ = 0;
  std::uint64_t generation_ = 0;
  std::size_t response_size_ = 0;
  std::uint32_t empty_polls_ = 0;                                  ///< polls that found the stage not ready
  cudaq::realtime::detail::steady_clock::time_point last_check_{}; ///< the last call of stage_engine::check_stage()
  shared_word<std::uint32_t> doing_, slot_seen_;
  alignas(64) in_flight_answers in_flight_;
};

} // namespace cudaq::qec::realtime::detail
