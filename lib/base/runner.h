// SPDX-License-Identifier: Apache-2.0
// Runs turns in a loop on a thread: how the thread starts, where it runs, how it waits after a turn without work, and
// how it ends. A turn does not depend on the thread that runs it, so a test can call it as a plain function.
#pragma once

#include "cudaq/realtime/detail/base/shared_word.h"
#include "lib/base/affinity.h"
#include "lib/base/cpu_relax.h"

#include <chrono>
#include <functional>
#include <string>
#include <thread>

namespace cudaq::realtime::detail {

using steady_clock = std::chrono::steady_clock;

/// How a loop waits after a turn without work. The only place where run_loop waits.
class idle_strategy {
public:
  idle_strategy(cudaq_wait_policy_t policy, std::uint64_t block_interval_ns)
      : policy_(policy), block_interval_ns_(block_interval_ns) {}

  /// `work`: the work count that the turn returned.
  void after_turn(std::uint32_t work) {
    if (work != 0) {
      empty_turns_ = 0;
      return;
    }
    if (policy_ == CUDAQ_WAIT_SPIN) // no pause instruction: on some cores it takes longer than a turn
      return;
    if (empty_turns_ < kSpins) {
      ++empty_turns_;
      cpu_relax();
      return;
    }
    yield_or_sleep();
  }

  /// Turns without work before the thread yields or sleeps: some tens of microseconds of polling, which is longer than
  /// the gaps inside a burst of requests.
  static constexpr std::uint32_t kSpins = 1000;

private:
  void yield_or_sleep() const;

  cudaq_wait_policy_t policy_;
  std::uint64_t block_interval_ns_;
  std::uint32_t empty_turns_ = 0;
};

/// Calls turn() until stop() returns true; stop() is called before each turn. turn() returns its work count.
template <class Turn, class Stop>
void run_loop(Turn &&turn, Stop &&stop, idle_strategy idle) {
  while (!stop())
    idle.after_turn(turn());
}

/// A thread with a name and a placement. Its owner can wait for its end with a deadline. All threads that the library
/// starts are loop_threads.
///
/// Signals of the program do not run their handlers on it: all signals are blocked except those that a thread causes by
/// its own instructions (SEGV, BUS, FPE, ILL, SYS, TRAP, ABRT). Cancellation is disabled on it.
class loop_thread {
public:
  loop_thread() = default;
  loop_thread(const loop_thread &) = delete;
  loop_thread &operator=(const loop_thread &) = delete;
  ~loop_thread();

  /// Starts the thread and waits until it is placed. If the placement is refused, the thread ends without running
  /// `body`, and the reason is returned. A callback that `body` calls, and that throws or ends the thread, ends the
  /// process (lib/base/callback.h).
  expected<> start(const std::string &name, const thread_placement &placement, std::function<void()> body);

  /// Waits for the end of `body` and joins the thread. False: the deadline passed and the thread still runs. True if no
  /// thread was started.
  bool join_until(steady_clock::time_point deadline);
  /// `body` has returned, or no thread was started. Any thread.
  bool ended() const { return finished_.load() != 0; }

private:
  std::thread thread_;
  shared_word<std::uint32_t> finished_{1};
};

/// The time `duration_ns` from now. A duration that the clock cannot add gives time_point::max(), which means: without
/// limit. Callers add every duration of the public interface by this function, because a plain sum would overflow.
steady_clock::time_point deadline_after(std::uint64_t duration_ns);

/// Waits until done() is true or the deadline passes, and returns the last value of done(). Yields 100 times, then
/// sleeps 50 us at a time. For control calls, never on the hot path.
bool wait_until(steady_clock::time_point deadline, const std::function<bool()> &done);

} // namespace cudaq::realtime::detail
