// SPDX-License-Identifier: Apache-2.0
// Counts allocations and locks of threads, and makes allocations fail, by interposition of malloc, operator new and
// pthread_mutex_lock. Include it in one source file of a program.
#pragma once

#include "unittests/support/sanitized.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <new>
#include <pthread.h>

namespace {
[[maybe_unused]] std::atomic<bool> counting{false};
[[maybe_unused]] std::atomic<std::uint64_t> allocations{0}, locks{0};
[[maybe_unused]] thread_local bool exempt = false; ///< set by the test's own threads, which are not counted
[[maybe_unused]] thread_local int fail_after =
    -1; ///< operator new of this thread fails once, after so many successful calls; -1: never

[[maybe_unused]] void note(std::atomic<std::uint64_t> &what) {
  if (counting.load(std::memory_order_relaxed) && !exempt)
    what.fetch_add(1, std::memory_order_relaxed);
}
} // namespace

#if !CUDAQ_TEST_SANITIZED
extern "C" {
void *__libc_malloc(std::size_t);
void *__libc_calloc(std::size_t, std::size_t);
void *__libc_realloc(void *, std::size_t);
void *__libc_memalign(std::size_t, std::size_t);
void __libc_free(void *);
__attribute__((visibility("default"))) void *malloc(std::size_t n) {
  note(allocations);
  return __libc_malloc(n);
}
__attribute__((visibility("default"))) void *calloc(std::size_t n, std::size_t s) {
  note(allocations);
  return __libc_calloc(n, s);
}
__attribute__((visibility("default"))) void *realloc(void *p, std::size_t n) {
  note(allocations);
  return __libc_realloc(p, n);
}
__attribute__((visibility("default"))) void free(void *p) {
  note(allocations);
  __libc_free(p);
}
__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t *m) {
  using lock_t = int (*)(pthread_mutex_t *);
  static const auto real = reinterpret_cast<lock_t>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  note(locks);
  return real(m);
}
}

static void *allocate(std::size_t n, std::size_t alignment) {
  if (fail_after >= 0 && fail_after-- == 0)
    throw std::bad_alloc();
  note(allocations);
  void *p = alignment > 16 ? __libc_memalign(alignment, n) : __libc_malloc(n);
  return p != nullptr ? p : throw std::bad_alloc();
}
void *operator new(std::size_t n) { return allocate(n, 0); }
void *operator new[](std::size_t n) { return allocate(n, 0); }
void *operator new(std::size_t n, std::align_val_t a) { return allocate(n, static_cast<std::size_t>(a)); }
void *operator new[](std::size_t n, std::align_val_t a) { return allocate(n, static_cast<std::size_t>(a)); }
void operator delete(void *p) noexcept { free(p); }
void operator delete[](void *p) noexcept { free(p); }
void operator delete(void *p, std::size_t) noexcept { free(p); }
void operator delete[](void *p, std::size_t) noexcept { free(p); }
void operator delete(void *p, std::align_val_t) noexcept { free(p); }
void operator delete[](void *p, std::align_val_t) noexcept { free(p); }
void operator delete(void *p, std::size_t, std::align_val_t) noexcept { free(p); }
void operator delete[](void *p, std::size_t, std::align_val_t) noexcept { free(p); }
#endif
