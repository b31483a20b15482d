// SPDX-License-Identifier: Apache-2.0
// Threads that enter and leave Python, and processes that are children of the one that made an object.
//
// Once Python's finalisation has begun, it ends each thread that wants the GIL by pthread_exit: the main thread of a
// script is over, and a daemon thread, a dispatcher's handler or a stage still runs. A destructor cannot be left in
// this way, and a callback of the library must return. So such a thread is parked, here, until the process ends.
//
// After fork a child has none of the threads that its objects use, and locks that other threads of the parent held stay
// locked.
#pragma once

#include <Python.h>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <cxxabi.h>
#include <mutex>
#include <nanobind/nanobind.h>
#include <stdexcept>
#include <thread>
#include <unistd.h>

namespace cudaq_python {

/// Python's finalisation has begun, or is over.
bool is_finalising();
/// When the module is loaded.
void watch_finalisation();
/// Until the process ends.
[[noreturn]] void park();

/// Calls a function of Python's C API that may take the GIL. It is the only frame of C++ between the API and its
/// caller: no destructor runs when Python ends the thread.
template <class Call>
auto or_park(const Call &call) {
  try {
    return call();
  } catch (abi::__forced_unwind &) {
    park();
  }
}

/// Gives the GIL back for its lifetime.
class gil_released {
public:
  gil_released() : state_(PyEval_SaveThread()) {}
  ~gil_released() {
    or_park([this] { PyEval_RestoreThread(state_); });
  }
  gil_released(const gil_released &) = delete;
  gil_released &operator=(const gil_released &) = delete;

private:
  PyThreadState *const state_;
};

/// Holds the GIL for its lifetime, on any thread.
class gil_held {
public:
  gil_held() : state_(or_park(&enter)) {}
  ~gil_held() { PyGILState_Release(state_); }
  gil_held(const gil_held &) = delete;
  gil_held &operator=(const gil_held &) = delete;

private:
  static PyGILState_STATE enter() {
    if (PyGILState_GetThisThreadState() == nullptr && is_finalising()) // not the thread that finalises
      park();
    return PyGILState_Ensure();
  }
  const PyGILState_STATE state_;
};

/// Ctrl-C in a call that has given the GIL back. check() asks Python for signals at most every 20 ms, which costs a
/// reading of a coarse clock otherwise. Only Python's main thread finds any.
class signal_watch {
public:
  /// Throws nanobind::python_error: what the handler of a signal has raised, mostly KeyboardInterrupt.
  void check() {
    const std::int64_t now = coarse_ms();
    if (now - last_ms_ < kPause_ms)
      return;
    last_ms_ = now;
    const gil_held held;
    if (PyErr_CheckSignals() != 0)
      throw nanobind::python_error();
  }
  static constexpr std::int64_t kPause_ms = 20;

private:
  static std::int64_t coarse_ms() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
  }
  std::int64_t last_ms_ = coarse_ms();
};

/// Held during a call of an object. A handler of a signal runs inside a call (signal_watch), and may call the same
/// object.
class call_mutex {
public:
  /// Throws std::runtime_error if the calling thread holds it.
  void lock() {
    if (owner_.load(std::memory_order_relaxed) == std::this_thread::get_id())
      throw std::runtime_error("called inside a call of the same object, by the handler of a signal");
    mutex_.lock();
    owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  void unlock() {
    owner_.store({}, std::memory_order_relaxed);
    mutex_.unlock();
  }

private:
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_{};
};

/// The process whose threads use an object; 0: none.
class process_of_threads {
public:
  void set() { pid_ = getpid(); }
  void clear() { pid_ = 0; }
  /// They are threads of a parent of this process, which has none of them.
  bool is_parent() const {
    const pid_t pid = pid_;
    return pid != 0 && pid != getpid();
  }

private:
  std::atomic<pid_t> pid_{0};
};

/// Marks its lifetime, for example while a lock is held.
class process_mark {
public:
  explicit process_mark(process_of_threads &of) : of_(of) { of_.set(); }
  ~process_mark() { of_.clear(); }
  process_mark(const process_mark &) = delete;
  process_mark &operator=(const process_mark &) = delete;

private:
  process_of_threads &of_;
};

} // namespace cudaq_python
