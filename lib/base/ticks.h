// SPDX-License-Identifier: Apache-2.0
// The CPU's cheapest monotonic counter, and times in nanoseconds from it.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

#if defined(__x86_64__)
#include <cpuid.h>
#include <emmintrin.h>
#endif

namespace cudaq::realtime::detail {

inline std::uint64_t steady_ns() noexcept {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

/// Read after all earlier loads have finished. Later instructions may run before it. Without such a counter:
/// nanoseconds of steady_clock.
inline std::uint64_t ticks_after_loads() noexcept {
#if defined(__x86_64__)
  _mm_lfence();
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t value;
  asm volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(value)::"memory");
  return value;
#else
  return steady_ns();
#endif
}

/// The same, but it may be read some nanoseconds earlier: earlier loads may not have finished. The wait for them is a
/// third of what ticks_after_loads() costs.
inline std::uint64_t ticks_about_now() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return steady_ns();
#endif
}

/// Durations in nanoseconds between moments that different threads may read. Constant after its construction.
class tick_clock {
public:
  /// Every duration is 0: for owners that measure nothing.
  tick_clock() = default;
  /// Compares the counter with steady_clock for 2 ms, in which the calling thread sleeps. On x86 a counter that changes
  /// its rate is not used; steady_clock is.
  static tick_clock measured() {
    tick_clock made;
    made.counts_ticks_ = has_constant_rate();
    made.ns_per_tick_ = 1;
    if (!made.counts_ticks_)
      return made;
    const moment first = both_clocks();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const moment last = both_clocks();
    made.ns_per_tick_ = static_cast<double>(last.ns - first.ns) / static_cast<double>(last.ticks - first.ticks);
    return made;
  }

  std::uint64_t now() const noexcept {
    if (counts_ticks_) [[likely]]
      return ticks_after_loads();
    return steady_ns();
  }
  /// For durations of whole requests: by ticks_about_now().
  std::uint64_t about_now() const noexcept {
    if (counts_ticks_) [[likely]]
      return ticks_about_now();
    return steady_ns();
  }
  /// 0 if `end` is before `begin`: the counters of two cores may differ by a few ticks.
  std::uint64_t ns_between(std::uint64_t begin, std::uint64_t end) const noexcept {
    const auto passed = static_cast<std::int64_t>(end - begin);
    return passed <= 0 ? 0 : static_cast<std::uint64_t>(static_cast<double>(passed) * ns_per_tick_);
  }

private:
  struct moment {
    std::uint64_t ns, ticks;
  };
  /// One moment on both clocks. Between two reads the thread may lose its core: the closest of several pairs counts.
  static moment both_clocks() noexcept {
    moment best{};
    std::uint64_t closest = UINT64_MAX;
    for (int pair = 0; pair < 16; ++pair) {
      const std::uint64_t before = steady_ns(), ticks = ticks_after_loads(), apart = steady_ns() - before;
      if (apart < closest) {
        closest = apart;
        best = {before + apart / 2, ticks};
      }
    }
    return best;
  }
  static bool has_constant_rate() noexcept {
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & 1u << 8) != 0;
#else
    return true;
#endif
  }

  bool counts_ticks_ = false;
  double ns_per_tick_ = 0;
};

} // namespace cudaq::realtime::detail
