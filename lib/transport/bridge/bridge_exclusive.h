// SPDX-License-Identifier: Apache-2.0
// Sets of states, and the right to call the provider of an instance. Only the bridge_*.cpp files include this.
#pragma once

#include "lib/transport/bridge/bridge_instance.h"

namespace cudaq::realtime::detail {

constexpr std::uint32_t operator|(bridge_state a, bridge_state b) {
  return static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b);
}
constexpr std::uint32_t operator|(std::uint32_t a, bridge_state b) { return a | static_cast<std::uint32_t>(b); }
constexpr std::uint32_t only(bridge_state a) { return static_cast<std::uint32_t>(a); }

inline constexpr std::uint32_t kAtRest =
    bridge_state::created | bridge_state::connected | bridge_state::launched | bridge_state::disconnected;

/// The right to call the provider: one call at a time has it.
class bridge_instance::exclusive {
public:
  /// Takes the right, and releases the lock, if the state is one of `allowed`.
  exclusive(bridge_instance &of, std::unique_lock<std::mutex> lock, const char *entry, std::uint32_t allowed)
      : of_(of), result_(of.check_allowed(allowed)) {
    if (result_.failed())
      return;
    of.running_entry_ = entry;
    lock.unlock();
    of.thread_.join_until(steady_clock::time_point::max()); // an attempt to connect has ended: this does not wait
  }
  ~exclusive() {
    if (result_.failed())
      return;
    const std::lock_guard lock(of_.mutex_);
    of_.running_entry_ = nullptr;
  }
  exclusive(const exclusive &) = delete;
  exclusive &operator=(const exclusive &) = delete;

  const expected<> &result() const { return result_; }
  /// No other call changes it.
  bridge_state state() const { return of_.state_; }
  void enter(bridge_state state) {
    const std::lock_guard lock(of_.mutex_);
    of_.state_ = state;
    of_.changed_.notify_all();
  }

private:
  bridge_instance &of_;
  const expected<> result_;
};

} // namespace cudaq::realtime::detail
