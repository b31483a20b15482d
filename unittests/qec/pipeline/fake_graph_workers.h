// SPDX-License-Identifier: Apache-2.0
// The C API's graph workers without a GPU. set_host_workers, worker_job and release_worker of this program replace
// those of the library. Requests arrive at deferring handlers of the real dispatcher. One thread launches them on idle
// workers and calls the hooks; each worker's graph is a function that runs on the worker's own thread. A program that
// uses it compiles fake_graph_workers.cpp.
#pragma once

#include "unittests/support/spared.h"

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace cudaq::qec::realtime::test {

/// At most one object at a time in a program. It must outlive the pipeline.
class fake_graph_workers {
public:
  /// Stands in for the graph: `slot` is the request's frame. Returns the size of its result in bytes, for pipelines
  /// without a CPU stage.
  using graph = std::function<std::uint32_t(int worker, std::uint8_t *slot)>;
  explicit fake_graph_workers(graph body) : body_(std::move(body)) { the_one = this; }
  ~fake_graph_workers() {
    end();
    the_one = nullptr;
  }
  fake_graph_workers(const fake_graph_workers &) = delete;
  fake_graph_workers &operator=(const fake_graph_workers &) = delete;

  /// Call it before start. A ring in plain memory has no device address; hooks then get offsets.
  void ring(std::uint8_t *host, std::size_t stride) {
    host_ = host;
    stride_ = stride;
  }
  /// Called before each launch, after the hook, on the thread that launches. If it returns true, the launch fails.
  std::function<bool(int worker)> launch_fails;
  /// Set it before start. Launches are made within the handler, on the dispatcher's thread, as the library makes them:
  /// a hook that does not return holds the dispatcher. Without an idle worker, as otherwise.
  bool launch_in_handler = false;
  /// Launches that this object's thread has made, and that workers' threads have made.
  std::atomic<std::uint64_t> own_launches{0}, handed_launches{0};
  /// The device fails: each running request is answered, and no worker has a job afterwards. Waits first until a launch
  /// and its hooks have ended, because they read the slot.
  void fail_device() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !launching_; });
    for (worker &w : workers_)
      if (w.busy) {
        w.busy = false;
        cudaq_host_complete_deferred(dispatcher_, &w.job, CUDAQ_RPC_ERR_DEVICE_FAULT, 0);
      }
  }
  /// The number of requests that the dispatcher has handed over and no worker has begun.
  std::size_t waiting() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return waiting_.size();
  }
  int busy() {
    const std::lock_guard<std::mutex> lock(mutex_);
    int n = 0;
    for (const worker &w : workers_)
      n += w.busy;
    return n;
  }

  cudaq_status_t set(cudaq_dispatcher_t *dispatcher, const cudaq_host_worker_t *workers, std::size_t n) {
    end();
    kept_ = kept_ || std::any_of(workers_.begin(), workers_.end(), [](const worker &w) { return w.busy; });
    if (n != 0 && kept_) // the library refuses it in start
      return CUDAQ_ERR_STATE;
    for (const auto &known : functions_)
      cudaq_dispatcher_set_host_handler_v2(dispatcher, known.first, nullptr, nullptr, nullptr);
    functions_.clear();
    workers_.clear();
    dispatcher_ = dispatcher;
    for (std::size_t i = 0; i < n; ++i) {
      workers_.emplace_back().spec = workers[i];
      functions_.emplace(workers[i].function_id, this);
    }
    for (const auto &wanted : functions_)
      cudaq_dispatcher_set_host_handler_v2(dispatcher, wanted.first, &accept, this, nullptr);
    if (n != 0) {
      ends_ = false;
      launcher_ = std::thread([this] { launch_all(); });
      for (std::size_t i = 0; i < n; ++i)
        workers_[i].thread = std::thread([this, i] { play(static_cast<int>(i)); });
    }
    return CUDAQ_OK;
  }
  cudaq_status_t job(int id, cudaq_host_job_t *out) {
    const std::lock_guard<std::mutex> lock(mutex_);
    *out = workers_[static_cast<std::size_t>(id)].job;
    return workers_[static_cast<std::size_t>(id)].busy ? CUDAQ_OK : CUDAQ_ERR_STATE;
  }
  cudaq_status_t release(int id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    worker &w = workers_[static_cast<std::size_t>(id)];
    const bool was_busy = w.busy;
    w.busy = false;
    changed_.notify_all();
    return was_busy ? CUDAQ_OK : CUDAQ_ERR_STATE;
  }

  static fake_graph_workers *the_one;

private:
  struct worker {
    cudaq_host_worker_t spec{};
    cudaq_host_job_t job{};
    bool busy = false; ///< has a job that was not released
    bool runs = false;
    std::thread thread;
  };
  struct request {
    cudaq_host_job_t job;
    std::uint32_t function;
  };

  static std::int32_t accept(cudaq_host_call_t *call, void *self) {
    const cudaq::realtime::test::spared here;
    auto &fake = *static_cast<fake_graph_workers *>(self);
    const request next{call->job, call->function_id};
    std::unique_lock<std::mutex> lock(fake.mutex_);
    worker *const idle = fake.launch_in_handler ? fake.idle_for(next.function) : nullptr;
    if (idle != nullptr) {
      idle->busy = true;
      idle->job = next.job;
      lock.unlock();
      fake.launch(*idle, next);
      return CUDAQ_HOST_CALL_DEFERRED;
    }
    fake.waiting_.push_back(next);
    fake.changed_.notify_all();
    return CUDAQ_HOST_CALL_DEFERRED;
  }
  worker *idle_for(std::uint32_t function) {
    for (worker &w : workers_)
      if (!w.busy && !w.runs && w.spec.function_id == function)
        return &w;
    return nullptr;
  }
  void launch_all() {
    const cudaq::realtime::test::spared here;
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      worker *w = nullptr;
      changed_.wait(lock, [&] { return ends_ || (!waiting_.empty() && (w = idle_for(waiting_.front().function))); });
      if (ends_)
        return;
      const request next = waiting_.front();
      waiting_.pop_front();
      w->busy = true;
      w->job = next.job;
      launching_ = true;
      lock.unlock();
      launch(*w, next);
      lock.lock();
      launching_ = false;
      changed_.notify_all();
    }
  }
  void launch(worker &w, const request &next) {
    if (w.spec.hand_over == CUDAQ_HAND_OVER_HOOK_AND_LAUNCH && is_handed_over(w))
      return;
    if (!stage(w) || (w.spec.hand_over == CUDAQ_HAND_OVER_LAUNCH && is_handed_over(w)))
      return;
    ++own_launches;
    if (!run(w))
      return;
    w.spec.post_launch_fn(w.spec.post_launch_data, slot_dev(next.job), w.spec.stream);
  }
  bool is_handed_over(worker &w) {
    return waiting() != 0 && w.spec.hand_over_fn != nullptr &&
           w.spec.hand_over_fn(w.spec.hand_over_data, &launch_handed, &w) != 0;
  }
  /// False: the hook has thrown, and the request is answered.
  bool stage(worker &w) {
    try {
      w.spec.pre_launch_fn(w.spec.pre_launch_data, slot_dev(w.job), w.spec.stream);
      return true;
    } catch (...) {
      fail(w);
      return false;
    }
  }
  static int launch_handed(void *data) {
    const cudaq::realtime::test::spared here;
    auto &w = *static_cast<worker *>(data);
    ++the_one->handed_launches;
    if (w.spec.hand_over == CUDAQ_HAND_OVER_HOOK_AND_LAUNCH && !the_one->stage(w))
      return 999;
    return the_one->run(w) ? 0 : 719;
  }
  void *slot_dev(const cudaq_host_job_t &job) const { return reinterpret_cast<void *>(job.slot * stride_); }
  int id_of(const worker &w) const { return static_cast<int>(&w - workers_.data()); }
  /// False: the launch has failed, and its request is answered.
  bool run(worker &w) {
    if (launch_fails && launch_fails(id_of(w))) {
      fail(w);
      return false;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    w.runs = w.busy; // not if the device has failed
    changed_.notify_all();
    return w.runs;
  }
  void fail(worker &w) {
    const cudaq_host_job_t job = w.job;
    release(id_of(w));
    cudaq_host_complete_deferred(dispatcher_, &job, CUDAQ_RPC_ERR_LAUNCH_FAILED, 0);
  }
  void play(int id) {
    const cudaq::realtime::test::spared here;
    worker &w = workers_[static_cast<std::size_t>(id)];
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ends_ || w.runs; });
      if (ends_)
        return;
      const cudaq_host_job_t job = w.job;
      lock.unlock();
      const std::uint32_t size = body_(id, host_ + job.slot * stride_);
      if (w.spec.completion == CUDAQ_WORKER_LIBRARY_PUBLISHES) {
        release(id);
        cudaq_host_complete_deferred(dispatcher_, &job, 0, size);
      }
      lock.lock();
      w.runs = false;
      changed_.notify_all();
    }
  }
  void end() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
      changed_.notify_all();
    }
    if (launcher_.joinable())
      launcher_.join();
    for (worker &w : workers_)
      if (w.thread.joinable())
        w.thread.join();
  }

  graph body_;
  std::uint8_t *host_ = nullptr;
  std::size_t stride_ = 0;
  cudaq_dispatcher_t *dispatcher_ = nullptr;
  std::map<std::uint32_t, fake_graph_workers *> functions_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<request> waiting_;
  std::vector<worker> workers_;
  std::thread launcher_;
  bool launching_ = false; ///< from before the first hook until after the last
  bool kept_ = false;      ///< the caller has not released a worker of an earlier run
  bool ends_ = false;
};

} // namespace cudaq::qec::realtime::test
