// SPDX-License-Identifier: Apache-2.0
// Makes one allocation, or one creation of a thread, of the whole program fail. A program that uses it compiles
// failing_calls.cpp, whose operator new and pthread_create replace those of the C++ library and of libc, also for the
// library under test.
#pragma once

#include "unittests/support/spared.h"

#include <atomic>
#include <cstdint>

namespace cudaq::realtime::test {

enum class fault { allocation, thread };

namespace injection {
inline std::atomic<long> calls_left[2] = {-1, -1}; ///< by kind: calls that still succeed; negative: all do
inline std::atomic<std::uint64_t> injected{0};
inline std::atomic<long> live{0};
} // namespace injection

/// While it lives, call number `n` of this kind fails, counted from 0 over all threads that are not spared.
class failing_call {
public:
  failing_call(fault kind, long n) : left_(injection::calls_left[static_cast<int>(kind)]), before_(injected()) {
    left_ = n;
  }
  ~failing_call() { left_ = -1; }
  failing_call(const failing_call &) = delete;
  failing_call &operator=(const failing_call &) = delete;
  /// The call was made, and it failed.
  bool happened() const { return injected() != before_; }

  /// Number of calls that failed, in the whole program so far.
  static std::uint64_t injected() { return injection::injected; }
  /// Number of allocations that were not freed so far.
  static long live_allocations() { return injection::live; }

private:
  std::atomic<long> &left_;
  const std::uint64_t before_;
};

} // namespace cudaq::realtime::test
