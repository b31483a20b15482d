// SPDX-License-Identifier: Apache-2.0
// A thread of a test that reads the state and the counters of a dispatcher all the time: it expects legal transitions
// only, and no counter that goes back. Unlike the observer (observer.h), it keeps each transition for the test.
#pragma once

#include "unittests/support/api_fixture.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace cudaq::realtime::test {

using transition = std::pair<int, int>;

/// The transitions of lib/api/dispatcher.h. STOPPING may be too short to be seen.
inline bool is_legal(const transition &t) {
  constexpr int kCreated = CUDAQ_DISPATCHER_CREATED, kWired = CUDAQ_DISPATCHER_WIRED,
                kRunning = CUDAQ_DISPATCHER_RUNNING, kStopping = CUDAQ_DISPATCHER_STOPPING,
                kStopped = CUDAQ_DISPATCHER_STOPPED, kFailed = CUDAQ_DISPATCHER_FAILED;
  static constexpr transition legal[] = {
      {kCreated, kWired},   {kWired, kCreated},    {kWired, kRunning},  {kStopped, kRunning}, {kRunning, kStopping},
      {kRunning, kStopped}, {kStopping, kStopped}, {kRunning, kFailed}, {kStopping, kFailed}, {kFailed, kStopped}};
  return std::find(std::begin(legal), std::end(legal), t) != std::end(legal);
}

/// Reads a dispatcher from its own thread, and keeps the transitions that it has seen.
class state_watch {
public:
  explicit state_watch(const dispatcher_view &of) : of_(of), last_(of.state()), thread_([this] { watch(); }) {}
  ~state_watch() { end(); }
  void end() {
    end_ = true;
    if (thread_.joinable())
      thread_.join();
  }
  /// Waits until the thread has seen this state after all earlier ones. Tests call it after each start: a thread that
  /// is late would see STOPPING directly after WIRED.
  bool sees(cudaq_dispatcher_state_t state) {
    return eventually([&] { return last_.load() == state; });
  }
  std::vector<transition> seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

  std::atomic<bool> restarts{false}; ///< the test starts again: what is read after STOPPED may be of the next run

private:
  void watch() {
    std::vector<std::uint64_t> before(9);
    while (!end_) {
      const int now = of_.state();
      if (now != last_) {
        const transition step(last_, now);
        EXPECT_TRUE(is_legal(step)) << step.first << " to " << step.second;
        const std::lock_guard lock(mutex_);
        seen_.push_back(step);
      }
      last_ = now;
      std::uint64_t processed = 0;
      CUDAQ_EXPECT_OK(cudaq_dispatcher_get_processed(of_.get, &processed));
      const cudaq_dispatcher_stats_t s = of_.stats();
      const std::vector<std::uint64_t> counts = {processed,       s.received,     s.dispatched,
                                                 s.responded,     s.heartbeat,    s.handler_errors,
                                                 s.tx_busy_waits, s.cursor_jumps, s.dropped_unknown_function};
      for (std::size_t c = 0; c < counts.size(); ++c)
        EXPECT_GE(counts[c], before[c]) << "counter " << c << " went back in state " << now;
      before = counts;
      // The counters of a run that has ended are final. Read twice: no new run has begun meanwhile.
      if (s.state == CUDAQ_DISPATCHER_STOPPED && of_.state() == CUDAQ_DISPATCHER_STOPPED && !restarts) {
        EXPECT_EQ(s.in_flight, 0u);
        EXPECT_EQ(s.busy_slots, 0u);
      }
    }
  }

  const dispatcher_view &of_;
  std::mutex mutex_;
  std::vector<transition> seen_;
  std::atomic<int> last_;
  std::atomic<bool> end_{false};
  std::thread thread_;
};

} // namespace cudaq::realtime::test
