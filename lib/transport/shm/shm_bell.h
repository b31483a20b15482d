// SPDX-License-Identifier: Apache-2.0
// How one process sleeps until another one has changed a ring. Bit 0 of the word says that a thread sleeps or is about
// to; the other bits count the rings.
//
//   sleeper: raise bit 0, look at the ring again, sleep while the word is unchanged, clear bit 0
//   waker:   change the ring, add 2 to the word, wake the sleeper if bit 0 was set
//
// Both change the same word by a read-modify-write, so one of the two comes first. If the sleeper is first, the waker
// finds bit 0. If the waker is first, the sleeper's second look finds the change. A ring between the look and the sleep
// changes the word, and the kernel then refuses the sleep. unittests/model/shm_bell.pml checks this. Every sleep is
// bounded all the same: the word is shared with a process that may write anything into it, or may die before it wakes
// the sleeper.
#pragma once

#include "cudaq/realtime/detail/base/shared_word.h"

#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cudaq::realtime::detail {

/// One sleeping thread at a time; any number of wakers. In shared memory: all zero is a valid bell.
class shm_bell {
public:
  void ring() {
    if ((word_.add(2) & kSleeps) != 0)
      ::syscall(SYS_futex, &word_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }

  /// Sleeps at most timeout_ns, unless ready() is true. Returns early without a reason at times.
  template <class Ready>
  void sleep(std::uint64_t timeout_ns, Ready &&ready) {
    const std::uint32_t before = word_.raise_bits(kSleeps) | kSleeps;
    if (!ready()) {
      timespec limit{};
      limit.tv_sec = static_cast<std::time_t>(timeout_ns / 1000000000u);
      limit.tv_nsec = static_cast<long>(timeout_ns % 1000000000u);
      ::syscall(SYS_futex, &word_, FUTEX_WAIT, before, &limit, nullptr, 0);
    }
    word_.clear_bits(kSleeps);
  }

private:
  static constexpr std::uint32_t kSleeps = 1;
  shared_word<std::uint32_t> word_;
};
static_assert(sizeof(shm_bell) == 4);

} // namespace cudaq::realtime::detail
