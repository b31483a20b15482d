// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM: the first one asks the running subcommand to end, one that comes half a second later or more ends
// the program. Those in between repeat the first one: `timeout` signals its program, then the whole process group.
#pragma once

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <initializer_list>
#include <unistd.h>

namespace cudaq::realtime::tools {

/// A second signal within this time after the first one repeats it, in every subcommand.
inline constexpr std::int64_t kSignalRepetitionNs = 500'000'000;

/// The first process of a container gets no signal that it does not handle: the default action of SIGTERM, which ends
/// other programs, is none there. So it ends by a handler. For main, before anything waits.
inline void end_on_signals_as_first_process() {
  if (getpid() != 1)
    return;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL)
      continue;
    now = {};
    now.sa_handler = [](int number) { _exit(128 + number); };
    sigaction(signal, &now, nullptr);
  }
}

/// One at a time.
class interrupt_guard {
public:
  interrupt_guard() {
    flag().store(false);
    struct sigaction action {};
    action.sa_handler = &on_signal;
    sigaction(SIGINT, &action, &interrupt_before_);
    sigaction(SIGTERM, &action, &terminate_before_);
  }
  ~interrupt_guard() {
    sigaction(SIGINT, &interrupt_before_, nullptr);
    sigaction(SIGTERM, &terminate_before_, nullptr);
  }
  interrupt_guard(const interrupt_guard &) = delete;
  interrupt_guard &operator=(const interrupt_guard &) = delete;

  [[nodiscard]] static bool interrupted() { return flag().load(std::memory_order_acquire); }
  /// The signal came a second ago, or earlier: what was begun ends, too.
  [[nodiscard]] static bool is_grace_over() { return interrupted() && clock_ns() - first_ns() >= kGraceNs; }
  /// For code that knows no guard.
  [[nodiscard]] static std::atomic<bool> &flag() {
    static std::atomic<bool> interrupted{false};
    static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");
    return interrupted;
  }

private:
  static constexpr std::int64_t kGraceNs = 1'000'000'000;

  static std::int64_t clock_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
  }
  /// When the first signal came.
  static std::atomic<std::int64_t> &first_ns() {
    static std::atomic<std::int64_t> ns{0};
    static_assert(std::atomic<std::int64_t>::is_always_lock_free);
    return ns;
  }
  static void on_signal(int signal) {
    if (!interrupted()) {
      first_ns().store(clock_ns()); // before the flag: who sees it sees this
      flag().store(true);
    } else if (clock_ns() - first_ns() >= kSignalRepetitionNs) {
      if (getpid() == 1) // it has no default action
        _exit(128 + signal);
      std::signal(signal, SIG_DFL);
      std::raise(signal); // ends the program when this handler returns
    }
  }

  struct sigaction interrupt_before_ {
  }, terminate_before_{};
};

} // namespace cudaq::realtime::tools
