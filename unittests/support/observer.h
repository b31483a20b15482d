// SPDX-License-Identifier: Apache-2.0
// A thread that watches a dispatcher during a test: its state makes only legal transitions, and its counters never
// decrease. host_dispatcher_handle has one, and so have the dispatchers on the device path (device_path_fixture.h,
// device_run.h, gpu_dispatcher.h, device_graph_dispatcher.h): all tests that use them run under observation. A program
// that checks times or counts threads, locks or allocations defines CUDAQ_TEST_WITHOUT_OBSERVER.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <thread>

namespace cudaq::realtime::test {

/// One step of a dispatcher's state, by the numbers of cudaq_dispatcher_state_t.
struct state_step {
  int from, to;
  bool by_start; ///< only a call of start makes it
};

inline constexpr int kStateStopping = 5;
inline constexpr int kStates = 6;
inline constexpr state_step kLegalSteps[] = {
    {CUDAQ_DISPATCHER_CREATED, CUDAQ_DISPATCHER_WIRED, false},
    {CUDAQ_DISPATCHER_WIRED, CUDAQ_DISPATCHER_CREATED, false},
    {CUDAQ_DISPATCHER_WIRED, CUDAQ_DISPATCHER_RUNNING, true},
    {CUDAQ_DISPATCHER_WIRED, CUDAQ_DISPATCHER_FAILED, true},
    {CUDAQ_DISPATCHER_STOPPED, CUDAQ_DISPATCHER_RUNNING, true},
    {CUDAQ_DISPATCHER_STOPPED, CUDAQ_DISPATCHER_FAILED, true},
    {CUDAQ_DISPATCHER_RUNNING, CUDAQ_DISPATCHER_STOPPED, false},
    {CUDAQ_DISPATCHER_RUNNING, CUDAQ_DISPATCHER_FAILED, false},
    {CUDAQ_DISPATCHER_RUNNING, kStateStopping, false},
    {kStateStopping, CUDAQ_DISPATCHER_STOPPED, false},
    {kStateStopping, CUDAQ_DISPATCHER_FAILED, false},
    {CUDAQ_DISPATCHER_FAILED, CUDAQ_DISPATCHER_STOPPED, false},
};

/// reachable[from][to]: legal steps lead from one state to the other. Two looks may have several steps between them.
using state_table = std::array<std::array<bool, kStates>, kStates>;
constexpr state_table reachable_states(bool with_start) {
  state_table reachable{};
  for (std::size_t s = 0; s < kStates; ++s)
    reachable[s][s] = true;
  for (int round = 0; round < kStates; ++round)
    for (const state_step &step : kLegalSteps)
      if (with_start || !step.by_start)
        for (auto &row : reachable)
          if (row[static_cast<std::size_t>(step.from)])
            row[static_cast<std::size_t>(step.to)] = true;
  return reachable;
}
inline constexpr state_table kReachable = reachable_states(true);
inline constexpr state_table kReachableWithoutStart = reachable_states(false);
static_assert(!kReachableWithoutStart[CUDAQ_DISPATCHER_STOPPED][CUDAQ_DISPATCHER_FAILED], "field note, row 48");

/// Calls of this program that have begun and that have ended. The link option --wrap (the CMake target
/// cudaq-test-observer) sends each call through the functions below.
struct call_count {
  std::atomic<std::uint64_t> begun{0}, ended{0};
};
inline call_count start_calls, set_control_calls;

} // namespace cudaq::realtime::test

extern "C" {
__attribute__((weak)) cudaq_status_t __real_cudaq_dispatcher_start(cudaq_dispatcher_t *dispatcher);
__attribute__((weak)) cudaq_status_t
__real_cudaq_dispatcher_set_control(cudaq_dispatcher_t *dispatcher, volatile int *shutdown_flag, std::uint64_t *stats);
__attribute__((weak, used)) cudaq_status_t __wrap_cudaq_dispatcher_start(cudaq_dispatcher_t *dispatcher) {
  ++cudaq::realtime::test::start_calls.begun;
  const cudaq_status_t status = __real_cudaq_dispatcher_start(dispatcher);
  ++cudaq::realtime::test::start_calls.ended;
  return status;
}
__attribute__((weak, used)) cudaq_status_t
__wrap_cudaq_dispatcher_set_control(cudaq_dispatcher_t *dispatcher, volatile int *shutdown_flag, std::uint64_t *stats) {
  ++cudaq::realtime::test::set_control_calls.begun;
  const cudaq_status_t status = __real_cudaq_dispatcher_set_control(dispatcher, shutdown_flag, stats);
  ++cudaq::realtime::test::set_control_calls.ended;
  return status;
}
}

namespace cudaq::realtime::test {

/// True if this program counts the calls. Otherwise each look allows for a call before it.
inline bool calls_are_counted() { return &__real_cudaq_dispatcher_start != nullptr; }

/// Judges what an observer sees. Returns a text about what is illegal, or an empty text.
class observed_states {
public:
  /// `start_is_possible`: a call of start may have run since the look before this one began.
  std::string see(int state, bool start_is_possible) {
    if (state < 0 || state >= kStates)
      return "unknown state " + std::to_string(state);
    const int before = state_;
    state_ = state;
    const state_table &legal = start_is_possible ? kReachable : kReachableWithoutStart;
    if (before < 0 || legal[static_cast<std::size_t>(before)][static_cast<std::size_t>(state)])
      return "";
    return "state " + std::to_string(before) + " became " + std::to_string(state) +
           (start_is_possible ? "" : " without a call of start");
  }

private:
  int state_ = -1;
};

/// Counters that never decrease.
class observed_counters {
public:
  std::string see(const cudaq_dispatcher_stats_t &now) {
    std::string wrong;
    const auto check = [&](const char *name, std::uint64_t before, std::uint64_t value) {
      if (value < before && wrong.empty())
        wrong = std::string(name) + " decreased from " + std::to_string(before) + " to " + std::to_string(value);
    };
#define CUDAQ_TEST_COUNTER(name) check(#name, before_.name, now.name)
    CUDAQ_TEST_COUNTER(received);
    CUDAQ_TEST_COUNTER(dispatched);
    CUDAQ_TEST_COUNTER(responded);
    CUDAQ_TEST_COUNTER(dropped_bad_magic);
    CUDAQ_TEST_COUNTER(dropped_unknown_function);
    CUDAQ_TEST_COUNTER(dropped_flag_value);
    CUDAQ_TEST_COUNTER(unexpected_flag_values);
    CUDAQ_TEST_COUNTER(handler_errors);
    CUDAQ_TEST_COUNTER(tx_busy_waits);
    CUDAQ_TEST_COUNTER(cursor_jumps);
    CUDAQ_TEST_COUNTER(launches);
    CUDAQ_TEST_COUNTER(relaunches);
    CUDAQ_TEST_COUNTER(heartbeat);
#undef CUDAQ_TEST_COUNTER
    for (int k = 0; k < CUDAQ_RPC_ERROR_COUNT; ++k)
      check("protocol_errors", before_.protocol_errors[k], now.protocol_errors[k]);
    before_ = now;
    return wrong;
  }

private:
  cudaq_dispatcher_stats_t before_{};
};

enum class observed_path { host, device };

/// Watches a dispatcher from its own thread until it is destroyed, which must be before the dispatcher is. On the
/// device path it looks less often, and does not expect to read a count that a kernel of the program keeps on a device
/// that has failed.
class dispatcher_observer {
public:
  explicit dispatcher_observer(const cudaq_dispatcher_t *dispatcher, observed_path path = observed_path::host)
      : dispatcher_(dispatcher), path_(path) {
    sigset_t all, before; // tests of signals look at the threads of the library and their own
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] {
      while (!end_.load()) {
        observe();
        std::this_thread::sleep_for(std::chrono::microseconds(path_ == observed_path::host ? 200 : 1000));
      }
      observe();
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~dispatcher_observer() {
    end_.store(true);
    thread_.join();
  }
  dispatcher_observer(const dispatcher_observer &) = delete;
  dispatcher_observer &operator=(const dispatcher_observer &) = delete;

private:
  void observe() {
    const std::uint64_t starts_ended = start_calls.ended.load();
    cudaq_dispatcher_state_t state{};
    expect(cudaq_dispatcher_get_state(dispatcher_, &state) == CUDAQ_OK, "get_state fails");
    see_state(static_cast<int>(state));
    cudaq_dispatcher_stats_t stats{};
    stats.struct_size = sizeof(stats);
    expect(cudaq_dispatcher_get_stats(dispatcher_, &stats) == CUDAQ_OK, "get_stats fails");
    see_state(static_cast<int>(stats.state));
    starts_ended_ = starts_ended;
    expect(counters_.see(stats));
    poll_processed();
  }

  void see_state(int state) {
    expect(states_.see(state, !calls_are_counted() || start_calls.begun.load() > starts_ended_));
  }

  void poll_processed() {
    const std::uint64_t rewired = set_control_calls.ended.load();
    std::uint64_t now = 0;
    // Only reading: the interface takes the dispatcher as non-const.
    const cudaq_status_t read = cudaq_dispatcher_get_processed(const_cast<cudaq_dispatcher_t *>(dispatcher_), &now);
    if (path_ == observed_path::device && read == CUDAQ_ERR_CUDA)
      return;
    expect(read == CUDAQ_OK, "get_processed fails");
    const bool same_word = calls_are_counted() && set_control_calls.begun.load() <= rewired_;
    if (same_word && now < processed_)
      expect("get_processed decreased from " + std::to_string(processed_) + " to " + std::to_string(now));
    processed_ = now;
    rewired_ = rewired;
  }

  void expect(bool holds, const char *wrong) {
    if (!holds)
      expect(std::string(wrong) + ": " + cudaq_last_error_message());
  }
  void expect(const std::string &wrong) {
    if (wrong.empty() || reported_)
      return;
    reported_ = true; // once: a dispatcher may live long
    ADD_FAILURE() << "the observer of a dispatcher: " << wrong;
  }

  const cudaq_dispatcher_t *const dispatcher_;
  const observed_path path_;
  observed_states states_;
  observed_counters counters_;
  std::uint64_t processed_ = 0, starts_ended_ = 0, rewired_ = 0;
  bool reported_ = false;
  std::atomic<bool> end_{false};
  std::thread thread_;
};

} // namespace cudaq::realtime::test
