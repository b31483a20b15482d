// SPDX-License-Identifier: Apache-2.0
// The graph workers of a host dispatcher: which workers are idle, the job of each worker, and the requests that wait
// for a worker. This file does not use CUDA, publish answers or touch ring flags.
//
//   push (thread that reads the ring) -> queue -> next_start -> begin -> launch ... ended -> end (idle again)
//
// When is a worker idle again?
//   the library frees it (GRAPH_ or LIBRARY_PUBLISHES)   when its done word holds the number of the launch
//   the caller frees it (CALLER_PUBLISHES)               when a thread has called release
//   its launch has failed                                when the work that its hooks have queued has ended
#pragma once

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_types.h"
#include "lib/host_dispatcher/graph_launcher.h"
#include "lib/host_dispatcher/work_queues.h"
#include "lib/shared_ring/job_table.h"

#include <bit>

namespace cudaq::realtime::detail {

inline constexpr std::uint32_t kMaxGraphWorkers = 64;

/// The job of a worker. The dispatcher's thread writes it before the launch; any thread may read it.
class alignas(128) worker_record {
public:
  /// The launch number is stored last: a reader that sees it sees the job. The other words are stored with release,
  /// too: a reader that sees one of them sees the end of the previous job.
  void begin(const cudaq_host_job_t &job, std::uint64_t launch_number) {
    slot_.store(job.slot);
    request_id_.store(job.request_id);
    generation_.store(job.generation);
    launch_number_.store(launch_number);
  }
  void end() { launch_number_.store(0); }
  /// 0: idle.
  std::uint64_t launch_number() const { return launch_number_.load(); }
  /// False: the worker is idle, or it ended this job or began another one during the call.
  bool read(cudaq_host_job_t &out) const {
    const std::uint64_t before = launch_number_.load();
    out = {generation_.load(), slot_.load(), request_id_.load()};
    return before != 0 && launch_number_.load() == before;
  }

private:
  shared_word<std::uint64_t> launch_number_; ///< number of the launch
  shared_word<std::uint64_t> generation_;
  shared_word<std::uint32_t> slot_, request_id_;
};

/// The launch of a worker that was handed over to the caller: the argument of cudaq_host_launch_fn_t.
struct alignas(128) handed_launch {
  static constexpr int kPending = -1; ///< no CUDA error
  graph_launcher *launcher = nullptr;
  std::uint32_t worker = 0, slot = 0;
  bool stages = false;     ///< with the pre-launch hook
  bool hook_threw = false; ///< the caller's thread writes it, before `error`
  shared_word<int> error;  ///< of the launch; the caller's thread writes it, kPending until then

  static int run(void *self) {
    auto &launch = *static_cast<handed_launch *>(self);
    launch_result result;
    launch.launcher->launch_elsewhere(launch.worker, launch.slot, launch.stages, result);
    launch.hook_threw = result.hook_threw;
    launch.error.store(result.error); // then the dispatcher may begin the worker's next launch
    return result.error;
  }
};

class graph_workers {
public:
  /// Prepares a run with the routes of `index`. Worker i is workers[i]; there are at most 64. All workers are idle.
  /// `jobs` must outlive the run. `idle_mask`, if given, is a word of the caller that outlives the run. That word then
  /// shows which workers are idle, also at the beginning, and the caller sets bits of it in place of calling release.
  void reset(const std::vector<cudaq_host_worker_t> &workers, const function_index_view &index, job_table &jobs,
             cudaq_busy_workers_t when_busy, std::shared_ptr<graph_launcher> launcher,
             shared_word<std::uint64_t> *idle_mask = nullptr);

  bool none() const { return specs_.empty(); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(specs_.size()); }
  const cudaq_host_worker_t &spec(std::uint32_t worker) const { return specs_[worker]; }
  graph_launcher &launcher() const { return *launcher_; }
  /// True if a worker has this route.
  bool serves(std::uint32_t route) const { return route < workers_of_route_.size() && workers_of_route_[route] != 0; }

  /// Accepts a request. Only for the thread that reads the ring.
  void push(std::uint32_t slot, std::uint32_t route) {
    queues_[queue_of_route_[route]]->waiting.push(*jobs_, slot);
    pushed_.bump();
  }

  // --- only for the dispatcher's thread ---

  /// Requests wait for a worker.
  bool backlog() const { return pushed_.value() != started_; }
  /// A worker runs that the library frees, or a failed launch has left a worker.
  bool running() const { return (running_ | failed_) != 0; }
  /// A failed launch has left a worker, which is not idle yet.
  bool failed() const { return failed_ != 0; }
  /// A worker is busy that the caller frees.
  bool held_by_caller() const { return held_by_caller_ != 0; }
  bool busy() const { return running() || held_by_caller(); }

  struct start {
    std::uint32_t slot = 0;
    std::uint32_t worker = 0;
  };
  /// The next request that an idle worker can take, in the order of options.busy_workers. False: no such request. The
  /// caller must call begin next.
  bool next_start(start &out);
  /// Takes a waiting request without a worker, to fail it. False: no request waits.
  bool next_to_fail(std::uint32_t &slot);
  /// Publishes the job record. Returns the number of the launch.
  std::uint64_t begin(std::uint32_t worker, const cudaq_host_job_t &job);
  /// After begin: hands the launch over to the caller, if it takes it. With CUDAQ_HAND_OVER_HOOK_AND_LAUNCH before
  /// graph_launcher::stage, which is then a part of the launch.
  bool hand_over(std::uint32_t worker, std::uint32_t slot);
  /// Some launches that were handed over are not handled by collect_handed_over so far.
  bool handed_over() const { return handed_over_ != 0; }
  bool handed_over(std::uint32_t worker) const { return (handed_over_ & bit(worker)) != 0; }
  /// For every launch that the caller has made since the last call: calls launched(worker, job, result). Returns their
  /// number.
  template <class Launched>
  std::uint32_t collect_handed_over(Launched &&launched) {
    std::uint32_t count = 0;
    for (std::uint64_t left = handed_over_; left != 0; left &= left - 1) {
      const auto w = static_cast<std::uint32_t>(std::countr_zero(left));
      const int error = handed_[w].error.load();
      if (error == handed_launch::kPending)
        continue;
      handed_over_ &= ~bit(w);
      launched(w, job(w), launch_result{error, handed_[w].hook_threw});
      ++count;
    }
    return count;
  }
  /// After begin: the launch has failed with `error`.
  void fail(std::uint32_t worker, int error);
  /// For every worker that a failed launch has left and for which ready(worker) is true: calls failed(worker, job,
  /// error), then frees the worker. Returns the number of these workers.
  template <class Ready, class Failed>
  std::uint32_t collect_failed(Ready &&ready, Failed &&failed) {
    std::uint32_t count = 0;
    for (std::uint64_t left = failed_; left != 0; left &= left - 1) {
      const auto w = static_cast<std::uint32_t>(std::countr_zero(left));
      if (!ready(w))
        continue;
      failed(w, job(w), errors_[w]);
      end(w);
      ++count;
    }
    return count;
  }

  /// For every worker whose graph has ended, or that the caller has released, since the last call: calls
  /// ended(worker, job), then frees the worker. Returns the number of these workers.
  template <class Ended>
  std::uint32_t collect(Ended &&ended) {
    std::uint32_t count = 0;
    for (std::uint64_t left = running_; left != 0; left &= left - 1) {
      const auto w = static_cast<std::uint32_t>(std::countr_zero(left));
      if (load_acquire(*done_words_[w]) != records_[w].launch_number())
        continue;
      ended(w, job(w));
      end(w);
      ++count;
    }
    return count + collect_released(ended);
  }
  /// After the loss of the device: calls ended(worker, job) for every busy worker. They are not used again. handed_over
  /// does not change: the caller still makes these launches.
  template <class Ended>
  void abandon(Ended &&ended) {
    for (std::uint64_t left = running_ | held_by_caller_; left != 0; left &= left - 1) {
      const auto w = static_cast<std::uint32_t>(std::countr_zero(left));
      ended(w, job(w));
      records_[w].end();
    }
    running_ = held_by_caller_ = 0;
  }

  // --- any thread ---

  /// The job of a busy worker.
  bool read_job(std::uint32_t worker, cudaq_host_job_t &out) const {
    return (idle_->load() & bit(worker)) == 0 && records_[worker].read(out);
  }
  /// Workers that the caller has not released, as bits. Not during a run.
  std::uint64_t kept_by_caller() const { return has_own_mask() ? held_by_caller_ & ~idle_->load() : 0; }
  std::uint64_t idle_mask() const { return idle_->load(); }
  /// False: the caller frees workers through its own word, and has no handle to complete requests.
  bool has_own_mask() const { return idle_ == &own_idle_; }
  /// Frees a worker that the caller frees. False: it is idle already.
  bool release(std::uint32_t worker) { return (idle_->raise_bits(bit(worker)) & bit(worker)) == 0; }

private:
  struct queue {
    slot_list waiting;
    std::uint32_t head = kNone; ///< taken from `waiting`, but not started, because no worker was idle
  };
  static constexpr std::uint32_t kNone = function_index_view::kNone;

  static std::uint64_t bit(std::uint32_t worker) { return std::uint64_t{1} << worker; }
  /// The job of a worker that this thread has started.
  cudaq_host_job_t job(std::uint32_t worker) const {
    cudaq_host_job_t out{};
    records_[worker].read(out);
    return out;
  }
  bool has_head(queue &q) { return q.head != kNone || q.waiting.pop(*jobs_, q.head); }
  template <class Ended>
  std::uint32_t collect_released(Ended &ended) {
    if (held_by_caller_ == 0)
      return 0;
    std::uint32_t count = 0;
    for (std::uint64_t left = held_by_caller_ & ~handed_over_ & idle_->load(); left != 0; left &= left - 1) {
      const auto w = static_cast<std::uint32_t>(std::countr_zero(left));
      held_by_caller_ &= ~bit(w);
      ended(w, job(w));
      records_[w].end();
      ++count;
    }
    return count;
  }

  /// The worker is idle again.
  void end(std::uint32_t worker);

  job_table *jobs_ = nullptr; ///< of the run
  std::vector<cudaq_host_worker_t> specs_;
  std::shared_ptr<graph_launcher> launcher_;
  std::vector<const volatile std::uint64_t *> done_words_;
  std::array<worker_record, kMaxGraphWorkers> records_;
  std::array<handed_launch, kMaxGraphWorkers> handed_;
  std::vector<std::uint64_t> workers_of_route_; ///< as bits
  std::vector<std::uint32_t> queue_of_route_;
  std::vector<std::unique_ptr<queue>> queues_;
  alignas(128) shared_word<std::uint64_t> own_idle_;
  shared_word<std::uint64_t> *idle_ = &own_idle_; ///< bit w: worker w is idle
  alignas(128) counter pushed_;

  // Only for the dispatcher's thread.
  std::uint64_t started_ = 0;        ///< how many of the pushed requests were taken from the queues
  std::uint64_t running_ = 0;        ///< bits: workers whose done word is awaited
  std::uint64_t held_by_caller_ = 0; ///< bits: busy workers that the caller frees
  std::uint64_t handed_over_ = 0;    ///< bits: of these, workers whose launch the caller makes
  std::uint64_t failed_ = 0;         ///< bits: workers whose launch has failed
  std::array<int, kMaxGraphWorkers> errors_{};
  std::uint64_t launches_ = 0; ///< number of the last launch; not reset between runs: an old done word never matches
  std::uint32_t first_queue_ = 0;
};

} // namespace cudaq::realtime::detail
