// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <thread>

namespace cudaq::realtime::test {

/// Only so that a hang ends: on a busy machine, threads that yield in a loop may keep the others from running for 40 s.
inline constexpr auto kDeadline = std::chrono::seconds(50); // below the limit of a GPU test

/// Polls `done` until it holds: yields 100 times, then sleeps, so that the thread it waits for can run. Returns false
/// after the deadline. Every wait of a test uses this.
template <class Done>
bool eventually(Done &&done, std::chrono::nanoseconds limit = kDeadline) {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (int polls = 0; !done(); ++polls) {
    if (std::chrono::steady_clock::now() >= end)
      return done();
    if (polls < 100)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return true;
}

} // namespace cudaq::realtime::test
