// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM: the first one asks the running subcommand to end, a second one ends the program.
#pragma once

#include <atomic>
#include <csignal>

namespace cudaq::realtime::tools {

/// One at a time.
class interrupt_guard {
public:
  interrupt_guard() {
    flag().store(false);
    struct sigaction action {};
    action.sa_handler = [](int) { flag().store(true, std::memory_order_relaxed); };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &interrupt_before_);
    sigaction(SIGTERM, &action, &terminate_before_);
  }
  ~interrupt_guard() {
    sigaction(SIGINT, &interrupt_before_, nullptr);
    sigaction(SIGTERM, &terminate_before_, nullptr);
  }
  interrupt_guard(const interrupt_guard &) = delete;
  interrupt_guard &operator=(const interrupt_guard &) = delete;

  [[nodiscard]] static bool interrupted() { return flag().load(std::memory_order_relaxed); }
  /// For code that knows no guard.
  [[nodiscard]] static std::atomic<bool> &flag() {
    static std::atomic<bool> interrupted{false};
    static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");
    return interrupted;
  }

private:
  struct sigaction interrupt_before_ {
  }, terminate_before_{};
};

} // namespace cudaq::realtime::tools
