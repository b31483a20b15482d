// SPDX-License-Identifier: Apache-2.0
// Waiting without a limit. GCC 12 gave std::condition_variable::wait another symbol (GLIBCXX_3.4.30): a library with it
// is not loaded where the C++ runtime is that of GCC 11, as on RHEL 9. Waits with a limit have no such symbol.
#pragma once

#include <condition_variable>
#include <mutex>

#include <pthread.h>

namespace cudaq::realtime::detail {

/// changed.wait(lock).
inline void wait_on(std::condition_variable &changed, std::unique_lock<std::mutex> &lock) {
  pthread_cond_wait(changed.native_handle(), lock.mutex()->native_handle()); // fails only for a lock that is not held
}

/// changed.wait(lock, is_over).
template <typename Predicate>
void wait_on(std::condition_variable &changed, std::unique_lock<std::mutex> &lock, Predicate is_over) {
  while (!is_over())
    wait_on(changed, lock);
}

} // namespace cudaq::realtime::detail
