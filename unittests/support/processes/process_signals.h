// SPDX-License-Identifier: Apache-2.0
// Signals that are sent to the whole process: which thread runs their handler? And the one that ends it, after a
// callback that has not returned.
#pragma once

#include "unittests/support/eventually.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <pthread.h>
#include <set>
#include <string>
#include <thread>
#include <unistd.h>

namespace cudaq::realtime::test {

/// Sends SIGUSR1 to the process 50 times and returns the threads that ran its handler. The calling thread blocks the
/// signal for a moment, so that each other thread that does not block it gets it. Then it takes the signal itself.
class process_signals {
public:
  static std::set<pid_t> send_fifty() {
    struct sigaction mine {
    }, before{};
    mine.sa_handler = [](int) {
      const int n = count;
      if (n < kSignals)
        handlers[n] = gettid();
      count = n + 1;
    };
    sigaction(SIGUSR1, &mine, &before);
    sigset_t usr1, old;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    count = 0;
    for (int n = 0; n < kSignals; ++n) {
      pthread_sigmask(SIG_BLOCK, &usr1, &old);
      kill(getpid(), SIGUSR1);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      pthread_sigmask(SIG_SETMASK, &old, nullptr); // runs the handler here, unless another thread has run it
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (count <= n && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(count, n + 1) << "a signal was not handled";
    }
    sigaction(SIGUSR1, &before, nullptr);
    std::set<pid_t> threads;
    for (const volatile pid_t &tid : handlers)
      threads.insert(pid_t{tid});
    return threads;
  }

private:
  static constexpr int kSignals = 50;
  static inline volatile pid_t handlers[kSignals];
  static inline volatile sig_atomic_t count;
};

/// A thread that is cancelled while it waits in `call`, which other threads let return. The cancellation must take
/// effect after it.
class cancelled_call {
public:
  explicit cancelled_call(std::function<void()> call) : call_(std::move(call)) {
    EXPECT_EQ(pthread_create(
                  &thread_, nullptr,
                  [](void *of) -> void * {
                    auto &self = *static_cast<cancelled_call *>(of);
                    self.step_ = 1;
                    self.call_();
                    self.step_ = 2;
                    pthread_testcancel();
                    self.step_ = 3;
                    return nullptr;
                  },
                  this),
              0);
    EXPECT_TRUE(eventually([this] { return step_ != 0; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(pthread_cancel(thread_), 0);
  }
  void expect_end_after_the_call() {
    void *result = nullptr;
    pthread_join(thread_, &result);
    EXPECT_EQ(result, PTHREAD_CANCELED);
    EXPECT_EQ(step_, 2);
  }

private:
  const std::function<void()> call_;
  std::atomic<int> step_{0};
  pthread_t thread_{};
};

/// Runs `run` in a child process, which must be aborted after a line with `text` (a regular expression). `run` waits
/// with a deadline, and its return is a failure.
template <class Run>
void expect_end_of_process(const Run &run, const std::string &text) {
#if !defined(CUDAQ_TEST_EMULATED) // the emulator does not start programs
  GTEST_FLAG_SET(death_test_style, "threadsafe");
#endif
  EXPECT_EXIT((run(), std::_Exit(0)), ::testing::KilledBySignal(SIGABRT), "libcudaq-realtime: " + text);
}

} // namespace cudaq::realtime::test
