// SPDX-License-Identifier: Apache-2.0
// Time and waiting, for every subcommand.
#pragma once

#include "lib/base/ticks.h"

#include <chrono>
#include <cstdint>
#include <ctime>
#include <thread>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace cudaq::realtime::tools {

/// CLOCK_MONOTONIC in nanoseconds. The demo writes this value into ptp_timestamp.
inline std::uint64_t now_ns() noexcept {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

/// The cheapest monotonic counter of the CPU, read in program order: earlier loads have finished, later loads have not
/// begun. tick_scale (exchange.h) converts its unit to nanoseconds.
inline std::uint64_t ticks() noexcept {
  const std::uint64_t value = detail::ticks_after_loads();
#if defined(__x86_64__)
  _mm_lfence();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
  return value;
}

/// Name of the counter that ticks() reads, for reports.
inline const char *ticks_name() noexcept {
#if defined(__x86_64__)
  return "rdtsc between two lfence";
#elif defined(__aarch64__)
  return "cntvct_el0 between two isb";
#else
  return "steady_clock";
#endif
}

/// One pass of a spin loop.
inline void relax() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

/// Seconds since 1970, of the clock that people read: it may be set.
inline double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Waits between polls: the first `spins` polls without work spin, later polls yield the core. For threads that may
/// have to share a core. worked() starts again at the spinning.
class spin_then_yield {
public:
  explicit spin_then_yield(std::uint32_t spins) : spins_(spins) {}
  void worked() noexcept { idle_ = 0; }
  void idle() noexcept {
    if (idle_ < spins_) {
      ++idle_;
      relax();
    } else {
      std::this_thread::yield();
    }
  }

private:
  std::uint32_t spins_;
  std::uint32_t idle_ = 0;
};

} // namespace cudaq::realtime::tools
