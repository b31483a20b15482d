/* SPDX-License-Identifier: Apache-2.0 */
// Threads that run jobs in the order of their arrival. As on all threads of the library, the program's signal handlers
// do not run on them.
#ifndef CUDAQ_QEC_UTILS_THREAD_POOL_H
#define CUDAQ_QEC_UTILS_THREAD_POOL_H

#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cxxabi.h>
#include <deque>
#include <functional>
#include <mutex>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cudaq::qec::utils {

class thread_pool {
public:
  /// base_core: thread i runs on CPU base_core + i; -1: on any CPU. Throws std::invalid_argument if num_threads is 0,
  /// std::runtime_error if the system refuses a CPU, std::system_error if it refuses a thread.
  explicit thread_pool(std::size_t num_threads, int base_core = -1) {
    if (num_threads == 0)
      throw std::invalid_argument("thread_pool: num_threads is 0, it must be at least 1");
    try {
      const signals_blocked for_the_new_threads;
      for (std::size_t i = 0; i < num_threads; ++i)
        threads_.emplace_back([this] { work(); });
    } catch (...) { // no destructor follows
      end();
      throw;
    }
    for (std::size_t i = 0; i < num_threads && base_core >= 0; ++i)
      if (!pin(threads_[i], base_core + static_cast<int>(i))) {
        end();
        throw std::runtime_error("thread_pool: CPU " + std::to_string(base_core + static_cast<int>(i)) +
                                 " is refused by the system");
      }
  }
  /// Runs all enqueued jobs first.
  ~thread_pool() { end(); }
  thread_pool(const thread_pool &) = delete;
  thread_pool &operator=(const thread_pool &) = delete;

  /// Called from any thread. Exceptions of the job are dropped. A job must not end its thread (pthread_exit): the pool
  /// has one thread less then.
  template <class Job>
  void enqueue(Job &&job) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      jobs_.emplace_back(std::forward<Job>(job));
    }
    wake_.notify_one();
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
      try {
        job();
      } catch (abi::__forced_unwind &) {
        throw;
      } catch (...) { // no caller waits for the job
        continue;
      }
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
