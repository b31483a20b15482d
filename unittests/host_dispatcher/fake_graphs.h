// SPDX-License-Identifier: Apache-2.0
// Graph workers without a GPU: threads play the device. They finish launched graphs in any order, and can fail, hang or
// fault. A worker computes the checked function of the request, as a HOST_CALL handler does.
#pragma once

#include "lib/api/back_end.h"
#include "lib/api/host_path/upstream_launcher.h"
#include "lib/host_dispatcher/host_dispatcher.h"
#include "unittests/host_dispatcher/traffic.h"

#include <condition_variable>
#include <deque>
#include <mutex>

namespace cudaq::realtime::test {

inline constexpr int kFakeError = 719; ///< the error of a trap in a graph

class fake_device final : public detail::graph_launcher {
public:
  fake_device(const detail::slot_ring &ring, std::vector<cudaq_host_worker_t> workers, int threads)
      : ring_(ring), workers_(std::move(workers)), done_(workers_.size()) {
    for (int t = 0; t < threads; ++t)
      threads_.emplace_back([this, t] { play(static_cast<unsigned>(t)); });
  }
  ~fake_device() override { join(); }
  /// Ends the device after the running graphs have finished.
  void join() {
    {
      const std::lock_guard lock(mutex_);
      end_ = true;
    }
    changed_.notify_all();
    for (std::thread &t : threads_)
      t.join();
    threads_.clear();
  }

  void run_on_device(const std::function<void()> &body) override { body(); }
  void stage(std::uint32_t worker, std::uint32_t slot, detail::launch_result &result) override {
    const cudaq_host_worker_t &w = workers_[worker];
    result.hook_threw =
        !detail::run_hook(w.pre_launch_fn, w.pre_launch_data, ring_.rx_slot(slot), nullptr, w.function_id);
    if (!result.hook_threw)
      result.error = 0;
  }
  void launch_elsewhere(std::uint32_t worker, std::uint32_t slot, bool stages, detail::launch_result &result) override {
    if (stages)
      stage(worker, slot, result);
    if (!stages || result.error == 0)
      result.error = enqueue({worker, slot, 0});
    if (launched_elsewhere)
      launched_elsewhere();
  }
  void launch(std::uint32_t worker, std::uint32_t slot, std::uint64_t launch_number,
              detail::launch_result &result) override {
    const cudaq_host_worker_t &w = workers_[worker];
    result.error = enqueue({worker, slot, launch_number});
    if (result.error != 0)
      return;
    result.hook_threw =
        !detail::run_hook(w.post_launch_fn, w.post_launch_data, ring_.rx_slot(slot), nullptr, w.function_id);
    result.error = error_after_launch.exchange(0);
  }
  const volatile std::uint64_t &done_word(std::uint32_t worker) const override { return done_[worker].word; }
  int recover(std::uint32_t worker) override {
    EXPECT_TRUE(idle(worker));
    ++recoveries;
    return fault();
  }
  int fault() override {
    const std::lock_guard lock(mutex_);
    return stuck_;
  }
  bool idle(std::uint32_t worker) override {
    ++questions;
    if ((hook_work.load() & (std::uint64_t{1} << worker)) != 0)
      return false;
    const std::lock_guard lock(mutex_);
    for (const run &r : launched_)
      if (r.worker == worker)
        return false;
    return unfinished_runs_[worker] == 0;
  }

  bool on_blocking_stream(std::uint32_t worker) const override { return worker == blocking_stream; }

  /// Loses the launched graphs and makes every later launch fail.
  void trap() {
    const std::lock_guard lock(mutex_);
    stuck_ = kFakeError;
    launched_.clear();
  }
  /// hold(true): launched graphs do not begin. hold(false): they begin.
  void hold(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }

  std::atomic<int> next_error{0};
  std::atomic<int> error_after_launch{0}; ///< the next launch returns it after its graph was launched
  std::atomic<std::uint32_t> launches{0}, recoveries{0}, questions{0}; ///< questions: how often idle() was called
  std::atomic<bool> silent{false};                                     ///< graphs write nothing and raise no flag
  /// GRAPH_PUBLISHES: called after the graph has raised its flag and before it ends.
  std::function<void(std::uint32_t worker)> published;
  std::uint32_t blocking_stream = ~0u;     ///< the worker whose stream is a blocking one
  std::atomic<std::uint64_t> hook_work{0}; ///< bit w: work that a hook of worker w has queued still runs
  /// CALLER_PUBLISHES: called by a device thread when the worker's result is ready, with no lock held.
  std::function<void(std::uint32_t worker)> ready;
  /// Called on the thread that makes a launch which was handed over, before the launch returns.
  std::function<void()> launched_elsewhere;
  /// Called before the graph runs. It observes which worker got which request.
  std::function<void(std::uint32_t worker, const std::uint8_t *rx_slot)> seen;

private:
  struct run {
    std::uint32_t worker, slot;
    std::uint64_t launch_number;
  };
  struct alignas(64) done_line {
    volatile std::uint64_t word = 0;
  };

  int enqueue(const run &r) {
    const std::lock_guard lock(mutex_);
    if (stuck_ != 0)
      return stuck_;
    if (const int error = next_error.exchange(0))
      return error;
    launched_.push_back(r);
    ++launches;
    changed_.notify_one();
    return 0;
  }
  void play(unsigned seed) {
    std::mt19937 random(seed);
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return end_ || (!held_ && !launched_.empty()); });
      if (end_)
        return;
      const auto pick = launched_.begin() + static_cast<std::ptrdiff_t>(random() % launched_.size());
      const run r = *pick;
      launched_.erase(pick);
      ++unfinished_runs_[r.worker];
      lock.unlock();
      run_graph(r);
      lock.lock();
      finish(r);
      --unfinished_runs_[r.worker];
    }
  }

  void run_graph(const run &r) {
    const std::uint32_t completion = workers_[r.worker].completion;
    if (seen)
      seen(r.worker, ring_.rx_slot(r.slot));
    if (silent)
      return;
    const auto request = detail::read_header<detail::request>(ring_.rx_slot(r.slot));
    checked_function::serve_v1(ring_.rx_slot(r.slot), ring_.tx_slot(r.slot), ring_.slot_size);
    if (completion == CUDAQ_WORKER_GRAPH_PUBLISHES) {
      const auto frame = detail::read_header<detail::response>(ring_.tx_slot(r.slot));
      detail::write_response(ring_.tx_slot(r.slot), request, frame.status, frame.result_len);
      ring_.publish_tx(r.slot);
      if (published)
        published(r.worker);
    }
  }
  /// Writes the launch number into the done word, or calls `ready` with the lock released.
  void finish(const run &r) {
    if (workers_[r.worker].completion != CUDAQ_WORKER_CALLER_PUBLISHES) {
      detail::store_release<std::uint64_t>(done_[r.worker].word, r.launch_number);
      return;
    }
    mutex_.unlock();
    ready(r.worker);
    mutex_.lock();
  }

  const detail::slot_ring ring_;
  const std::vector<cudaq_host_worker_t> workers_;
  std::vector<done_line> done_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<run> launched_;
  std::array<int, 64> unfinished_runs_{}; ///< runs of each worker that have not finished, with the time in `ready`
  int stuck_ = 0;
  bool held_ = false, end_ = false;
  std::vector<std::thread> threads_;
};

struct graph_rig_plan {
  ring_shape shape;
  std::vector<cudaq_host_worker_t> workers;
  std::vector<cudaq_function_entry_t> table;
  bool markers = true;
  std::uint32_t when_busy = CUDAQ_BUSY_WORKERS_WAIT;
  std::uint32_t pool = 0;
  int device_threads = 2;
  std::uint32_t wait_policy = CUDAQ_WAIT_SPIN_YIELD;
  std::uint64_t grace_period_ns = 5'000'000'000;
  bool own_thread = true; ///< false: the test calls dispatcher.loop
  std::vector<detail::v2_handler> v2;
  const host_ring *ring = nullptr; ///< the ring of another rig; used with its router, for a shared ring
  std::shared_ptr<detail::ring_router> router;
  bool shared = false, default_owner = false, handler_times = false;
  detail::upstream_words words; ///< words of the caller, as the loop of the upstream interface has them
};

inline cudaq_host_worker_t fake_worker(std::uint32_t function_id, std::uint64_t key, std::uint32_t completion) {
  cudaq_host_worker_t w{};
  w.struct_size = sizeof(w);
  w.function_id = function_id;
  w.routing_key = key;
  w.completion = completion;
  return w;
}

/// A running dispatcher with fake graph workers on a ring of plain memory.
class graph_rig {
public:
  explicit graph_rig(graph_rig_plan plan)
      : plan_(std::move(plan)), own_ring_(plan_.ring == nullptr ? std::make_unique<host_ring>(plan_.shape) : nullptr),
        ring(own_ring_ ? *own_ring_ : *plan_.ring),
        view_(detail::view_of(ring.ring, host_config(plan_.shape), detail::ring_side::host)) {
    if (!plan_.router) {
      plan_.router = std::make_shared<detail::ring_router>(
          std::make_shared<detail::job_table>(plan_.shape.num_slots, std::uint64_t{1} << 40));
      plan_.router->jobs()->bind(view_);
    }
    device = std::make_shared<fake_device>(view_, plan_.workers, plan_.device_threads);
    device->ready = [this](std::uint32_t worker) { answer_by_caller(worker); };
    const detail::expected<> result = start();
    EXPECT_TRUE(result.ok()) << result.text();
  }
  ~graph_rig() {
    device->hold(false);
    EXPECT_TRUE(stop());
    device->join(); // its threads call the dispatcher, so they must end before it is destroyed
  }
  /// Makes a run as host_back_end does. The constructor makes the first one.
  detail::expected<> start() {
    if (detail::expected<> result = dispatcher.check_restart(); result.failed())
      return result;
    detail::host_setup setup;
    setup.jobs = plan_.router->jobs();
    setup.router = plan_.router;
    setup.table = {plan_.table.data(), static_cast<std::uint32_t>(plan_.table.size())};
    setup.v2 = plan_.v2;
    setup.workers = plan_.workers;
    setup.launcher = device;
    if (plan_.words.any())
      setup.launcher = std::make_shared<detail::upstream_launcher>(device, plan_.words);
    setup.idle_mask = plan_.words.idle_mask;
    setup.options = default_options();
    setup.options.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER;
    setup.options.busy_workers = plan_.when_busy;
    setup.options.handler_pool_size = plan_.pool;
    setup.options.wait_policy = plan_.wait_policy;
    setup.options.grace_period_ns = plan_.grace_period_ns;
    setup.options.default_owner = plan_.default_owner;
    setup.shared_ring = plan_.shared;
    setup.handler_times = plan_.handler_times;
    setup.markers = plan_.markers;
    setup.shutdown_flag = &shutdown;
    setup.stats = &stats_;
    if (detail::expected<> result = dispatcher.prepare(std::move(setup)); result.failed())
      return result;
    return dispatcher.start(plan_.own_thread);
  }
  bool stop(std::chrono::nanoseconds limit = kDeadline) {
    dispatcher.request_stop();
    if (!dispatcher.finish(std::chrono::steady_clock::now() + limit))
      return false;
    dispatcher.leave_ring();
    return true;
  }
  const std::shared_ptr<detail::ring_router> &router() const { return plan_.router; }
  cudaq_dispatcher_stats_t stats() const {
    cudaq_dispatcher_stats_t out{};
    dispatcher.read_stats(out);
    return out;
  }
  /// Sends a request with `payload` in slot `slot`.
  void send(std::uint32_t slot, std::uint32_t function_id, std::uint64_t payload, std::uint32_t request_id) const {
    CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_write_rpc_request(&ring.ring, slot, function_id, &payload, sizeof(payload),
                                                            request_id, 0));
    cudaq_host_ringbuffer_signal_slot(&ring.ring, slot);
  }
  cudaq_tx_status_t tx_status(std::uint32_t slot, int *error = nullptr) const {
    return cudaq_host_ringbuffer_poll_tx_flag(&ring.ring, slot, error);
  }
  bool answered(std::uint32_t slot) const {
    return tx_status(slot) == CUDAQ_TX_READY || tx_status(slot) == CUDAQ_TX_ERROR;
  }
  std::int32_t status_of(std::uint32_t slot) const {
    cudaq_rpc_response_t header{};
    const void *result = nullptr;
    CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_read_rpc_response(&ring.ring, slot, &header, &result));
    return header.status;
  }

private:
  /// The CPU stage: reads the result, answers, and releases the worker before or after the answer.
  void answer_by_caller(std::uint32_t worker) {
    cudaq_host_job_t job{};
    EXPECT_TRUE(dispatcher.worker_job(static_cast<int>(worker), job).ok());
    cudaq_rpc_response_t frame{};
    std::memcpy(&frame, ring.tx_slot(job.slot), sizeof(frame));
    const bool release_first = job.request_id % 2 == 0;
    const auto release = [&] { EXPECT_TRUE(dispatcher.release_worker(static_cast<int>(worker)).ok()); };
    if (release_first)
      release();
    EXPECT_TRUE(dispatcher.complete_deferred(job, frame.status, frame.result_len).ok());
    if (!release_first)
      release();
    EXPECT_TRUE(dispatcher.complete_deferred(job, 0, 0).failed()) << "a job can be completed only once";
  }

  graph_rig_plan plan_;
  std::unique_ptr<host_ring> own_ring_;
  std::uint64_t stats_ = 0;

public:
  const host_ring &ring;

private:
  const detail::slot_ring view_;

public:
  volatile int shutdown = 0;
  std::shared_ptr<fake_device> device;
  detail::host_dispatcher dispatcher;
};

/// Functions 1 and 2, each with one fake graph.
class two_graphs : public ::testing::Test {
protected:
  explicit two_graphs(std::uint32_t first_completion) : first_completion_(first_completion) {}
  void SetUp() override {
    checked_function::v1_by_id[1] = &one;
    checked_function::v1_by_id[2] = &two;
    plan.shape = {8, 128, false};
    plan.workers = {fake_worker(1, 0, first_completion_), fake_worker(2, 0, CUDAQ_WORKER_LIBRARY_PUBLISHES)};
  }
  static void expect_answer(const graph_rig &rig, std::uint32_t slot, std::int32_t status) {
    ASSERT_TRUE(eventually([&] { return rig.tx_status(slot) == CUDAQ_TX_READY; })) << rig.dispatcher.describe();
    EXPECT_EQ(rig.status_of(slot), status);
  }
  static void expect_error(const graph_rig &rig, std::uint32_t slot, int error) {
    int found = 0;
    ASSERT_TRUE(eventually([&] { return rig.tx_status(slot, &found) == CUDAQ_TX_ERROR; })) << rig.dispatcher.describe();
    EXPECT_EQ(found, error);
  }
  checked_function one{1, 1000}, two{2, 1000};
  graph_rig_plan plan;

private:
  const std::uint32_t first_completion_;
};

} // namespace cudaq::realtime::test
