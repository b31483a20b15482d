// SPDX-License-Identifier: Apache-2.0
// Runs turns: the thread, its placement, what it does between turns that found no work, and how it ends. A turn knows
// nothing of threads, so every turn is testable as a plain call.
#pragma once

#include "cudaq/realtime/detail/base/flag_word.h"
#include "lib/base/affinity.h"
#include "lib/base/cpu_relax.h"

#include <chrono>
#include <functional>
#include <string>
#include <thread>

namespace cudaq::realtime::detail {

using steady_clock = std::chrono::steady_clock;

/// What a loop does after a turn without work. The only place where a thread waits.
class idle_strategy {
public:
  idle_strategy(cudaq_wait_policy_t policy, std::uint64_t block_interval_ns)
      : policy_(policy), block_interval_ns_(block_interval_ns) {}

  /// `work`: what the turn returned.
  void after_turn(std::uint32_t work) {
    if (work != 0) {
      empty_turns_ = 0;
      return;
    }
    if (policy_ == CUDAQ_WAIT_SPIN) // no pause: on some cores it takes longer than the turn
      return;
    if (empty_turns_ < kSpins) {
      ++empty_turns_;
      cpu_relax();
      return;
    }
    yield_or_sleep();
  }

  /// Some tens of microseconds of polling before the core is given away: longer than the gap inside a burst.
  static constexpr std::uint32_t kSpins = 1000;

private:
  void yield_or_sleep() const;

  cudaq_wait_policy_t policy_;
  std::uint64_t block_interval_ns_;
  std::uint32_t empty_turns_ = 0;
};

/// Calls turn() until stop() says so. turn returns its work count.
template <class Turn, class Stop>
void run_loop(Turn &&turn, Stop &&stop, idle_strategy idle) {
  while (!stop())
    idle.after_turn(turn());
}

/// A named, placed thread whose end can be waited for with a deadline.
class loop_thread {
public:
  loop_thread() = default;
  loop_thread(const loop_thread &) = delete;
  loop_thread &operator=(const loop_thread &) = delete;
  ~loop_thread();

  /// Starts the thread and waits until it is placed; a refused placement ends it and is returned.
  status_or_reason start(const std::string &name, const thread_placement &placement, std::function<void()> body);

  /// Waits for the end of the body and joins. False: the deadline passed, the thread goes on.
  bool join_until(steady_clock::time_point deadline);

private:
  std::thread thread_;
  shared_word<std::uint32_t> finished_;
};

/// Waits until `done` or the deadline: brief yields first, then short sleeps. For control calls, never on the hot path.
bool wait_until(steady_clock::time_point deadline, const std::function<bool()> &done);

} // namespace cudaq::realtime::detail
