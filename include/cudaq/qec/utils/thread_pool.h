/* SPDX-License-Identifier: Apache-2.0 */
// The specification's thread pool, for programs that use it; nothing in this library does. Jobs run in the order of
// their arrival. As on all threads of the library, the program's signal handlers do not run on them.
#ifndef CUDAQ_QEC_UTILS_THREAD_POOL_H
#define CUDAQ_QEC_UTILS_THREAD_POOL_H

#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace cudaq::qec::utils {

class thread_pool {
public:
  /// Threads on any CPU. Throws std::invalid_argument if num_threads is 0, std::system_error if the system refuses one.
  explicit thread_pool(std::size_t num_threads) : thread_pool(std::vector<int>(num_threads, -1)) {}
  /// One thread for each CPU of the list; -1: on any CPU. Throws std::runtime_error, too, if the system refuses a CPU.
  explicit thread_pool(const std::vector<int> &cores) {
    if (cores.empty())
      throw std::invalid_argument("thread_pool: it must have at least 1 thread");
    try {
      const signals_blocked for_the_new_threads;
      for (const int core : cores) {
        threads_.emplace_back([this]() noexcept { work(); });
        if (core >= 0 && !pin(threads_.back(), core))
          throw std::runtime_error("thread_pool: CPU " + std::to_string(core) + " is refused by the system");
      }
    } catch (...) { // no destructor follows
      end();
      throw;
    }
  }
  /// Runs all enqueued jobs first.
  ~thread_pool() { end(); }
  thread_pool(const thread_pool &) = delete;
  thread_pool &operator=(const thread_pool &) = delete;

  /// Called from any thread. Copies or moves the job and its arguments. The future has the job's result or exception;
  /// it need not be kept. A job returns or throws; one that ends its thread otherwise (pthread_exit) ends the process.
  template <class Job, class... Arguments>
  auto enqueue(Job &&job, Arguments &&...arguments)
      -> std::future<std::invoke_result_t<std::decay_t<Job>, std::decay_t<Arguments>...>> {
    using result = std::invoke_result_t<std::decay_t<Job>, std::decay_t<Arguments>...>;
    auto task = std::make_shared<std::packaged_task<result()>>(
        [call = std::decay_t<Job>(std::forward<Job>(job)),
         with = std::tuple<std::decay_t<Arguments>...>(std::forward<Arguments>(arguments)...)]() mutable -> result {
          return std::apply(std::move(call), std::move(with));
        });
    std::future<result> answer = task->get_future();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      jobs_.emplace_back([task] { (*task)(); });
    }
    wake_.notify_one();
    return answer;
  }
  std::size_t size() const { return threads_.size(); }

private:
  /// While it lives, the calling thread blocks all signals that are not caused by its own instructions. Threads that it
  /// starts go on to block them.
  class signals_blocked {
  public:
    signals_blocked() {
      sigset_t all;
      sigfillset(&all);
      for (const int synchronous : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP, SIGABRT})
        sigdelset(&all, synchronous);
      pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    signals_blocked(const signals_blocked &) = delete;
    signals_blocked &operator=(const signals_blocked &) = delete;

  private:
    sigset_t before_;
  };

  static bool pin(std::thread &thread, int core) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    if (core >= CPU_SETSIZE)
      return false;
    CPU_SET(static_cast<std::size_t>(core), &cpus);
    return pthread_setaffinity_np(thread.native_handle(), sizeof(cpus), &cpus) == 0;
  }
  void work() {
    for (;;) {
      std::function<void()> job;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
        if (jobs_.empty())
          return;
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      job(); // an exception of it goes to its future
    }
  }
  void end() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
    }
    wake_.notify_all();
    for (std::thread &t : threads_)
      t.join();
    threads_.clear();
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

using ThreadPool = thread_pool;

} // namespace cudaq::qec::utils

#endif
