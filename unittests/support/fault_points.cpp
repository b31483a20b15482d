// SPDX-License-Identifier: Apache-2.0
#include "unittests/support/fault_points.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <new>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cudaq::realtime::test::faults {
namespace {

/// A loop that waits for a device makes any number of CUDA calls, of the runtime and of the driver. Only the first ones
/// of each name count, so that the numbers of the other calls do not depend on the time.
constexpr std::uint32_t kCudaCallsThatCount = 12;

struct point {
  const char *what = nullptr;
  std::uint32_t since_arm = 0;
  std::uint64_t failed = 0;
};

/// No constructor runs: operator new is called before those of this file.
constinit std::array<point, 64> points{};
constinit std::atomic_flag lock = ATOMIC_FLAG_INIT; ///< of all words here, except the atomic ones
constinit std::uint64_t first_call = 0, last_call = 0, calls = 0, fired = 0;
constinit const char *last_what = "", *only = nullptr;
constinit std::atomic<bool> armed{false};
constinit std::atomic<long> blocks{0}, mappings{0}, live_threads{0};
constinit std::array<pthread_t, 256> counted_threads{};
constinit thread_local bool exempt = false;

struct guard {
  guard() {
    while (lock.test_and_set())
      sched_yield();
  }
  ~guard() { lock.clear(); }
};

point &point_of(const char *what) {
  std::size_t i = 0;
  while (i + 1 < points.size() && points[i].what != nullptr && std::strcmp(points[i].what, what) != 0)
    ++i;
  points[i].what = what;
  return points[i];
}

template <class Function>
Function next(const char *name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

void note_thread(pthread_t thread) {
  const guard hold;
  for (pthread_t &t : counted_threads)
    if (t == 0) {
      t = thread;
      ++live_threads;
      return;
    }
}

void forget_thread(pthread_t thread) {
  const guard hold;
  for (pthread_t &t : counted_threads)
    if (t == thread) {
      t = 0;
      --live_threads;
      return;
    }
}

} // namespace

void arm(std::uint64_t first, std::uint64_t count, const char *of) {
  const guard hold;
  only = of;
  for (point &p : points)
    p.since_arm = 0;
  first_call = first;
  last_call = first + count - 1;
  calls = fired = 0;
  last_what = "";
  armed.store(true);
}

std::uint64_t disarm() {
  const guard hold;
  armed.store(false);
  return fired;
}

const char *last() {
  const guard hold;
  return last_what;
}

bool hits(const char *what) noexcept {
  if (!armed.load() || exempt)
    return false;
  const guard hold;
  point &p = point_of(what);
  if (!armed.load() || (++p.since_arm > kCudaCallsThatCount && std::strncmp(what, "cu", 2) == 0))
    return false;
  if ((only != nullptr && std::strcmp(only, what) != 0) || ++calls < first_call || calls > last_call)
    return false;
  ++p.failed;
  ++fired;
  last_what = what;
  return true;
}

exempt_scope::exempt_scope() noexcept : before_(exempt) { exempt = true; }
exempt_scope::~exempt_scope() { exempt = before_; }

std::uint64_t injected(const std::string &prefix) {
  const guard hold;
  std::uint64_t sum = 0;
  for (const point &p : points)
    if (p.what != nullptr && std::strncmp(p.what, prefix.c_str(), prefix.size()) == 0)
      sum += p.failed;
  return sum;
}

namespace {
/// A copy: who holds the lock must not allocate.
std::array<point, 64> all_points() {
  const guard hold;
  return points;
}
} // namespace

std::map<std::string, std::uint64_t> made() {
  const exempt_scope own; // the map's memory
  std::map<std::string, std::uint64_t> counts;
  for (const point &p : all_points())
    if (p.since_arm != 0)
      counts[p.what] = std::min(p.since_arm, std::strncmp(p.what, "cu", 2) == 0 ? kCudaCallsThatCount : UINT32_MAX);
  return counts;
}

holdings held() { return {blocks.load(), mappings.load(), live_threads.load()}; }

namespace {
/// NULL: no memory.
void *allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (hits("operator new"))
    return nullptr;
  void *block = nullptr;
  if (alignment <= alignof(std::max_align_t))
    block = std::malloc(bytes == 0 ? 1 : bytes);
  else if (posix_memalign(&block, alignment, bytes == 0 ? 1 : bytes) != 0)
    block = nullptr;
  blocks += block != nullptr;
  return block;
}
void *allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  if (void *block = allocate(bytes, alignment))
    return block;
  throw std::bad_alloc();
}
void release(void *block) noexcept {
  blocks -= block != nullptr;
  std::free(block);
}
constexpr std::size_t size_of(std::align_val_t alignment) { return static_cast<std::size_t>(alignment); }
} // namespace
} // namespace cudaq::realtime::test::faults

using namespace cudaq::realtime::test::faults;

// Not inline: if a compiler inlines only one of new and delete, it warns of a free that does not match.
#define CUDAQ_REPLACED [[gnu::noinline]]
CUDAQ_REPLACED void *operator new(std::size_t n) { return allocate_or_throw(n, 0); }
CUDAQ_REPLACED void *operator new[](std::size_t n) { return allocate_or_throw(n, 0); }
CUDAQ_REPLACED void *operator new(std::size_t n, std::align_val_t a) { return allocate_or_throw(n, size_of(a)); }
CUDAQ_REPLACED void *operator new[](std::size_t n, std::align_val_t a) { return allocate_or_throw(n, size_of(a)); }
CUDAQ_REPLACED void *operator new(std::size_t n, const std::nothrow_t &) noexcept { return allocate(n, 0); }
CUDAQ_REPLACED void *operator new[](std::size_t n, const std::nothrow_t &) noexcept { return allocate(n, 0); }
CUDAQ_REPLACED void operator delete(void *p) noexcept { release(p); }
CUDAQ_REPLACED void operator delete[](void *p) noexcept { release(p); }
CUDAQ_REPLACED void operator delete(void *p, std::size_t) noexcept { release(p); }
CUDAQ_REPLACED void operator delete[](void *p, std::size_t) noexcept { release(p); }
CUDAQ_REPLACED void operator delete(void *p, std::align_val_t) noexcept { release(p); }
CUDAQ_REPLACED void operator delete[](void *p, std::align_val_t) noexcept { release(p); }
CUDAQ_REPLACED void operator delete(void *p, std::size_t, std::align_val_t) noexcept { release(p); }
CUDAQ_REPLACED void operator delete[](void *p, std::size_t, std::align_val_t) noexcept { release(p); }
CUDAQ_REPLACED void operator delete(void *p, const std::nothrow_t &) noexcept { release(p); }
CUDAQ_REPLACED void operator delete[](void *p, const std::nothrow_t &) noexcept { release(p); }
#undef CUDAQ_REPLACED

// Placement always succeeds here, unless it must fail: a test machine may have no second node, no huge pages, and no
// right to set real-time priorities.
extern "C" {
#define CUDAQ_REPLACED __attribute__((visibility("default")))
CUDAQ_REPLACED int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                                  void *argument) {
  static const auto real = next<decltype(&pthread_create)>("pthread_create");
  if (hits("pthread_create"))
    return EAGAIN;
  const int error = real(thread, attributes, body, argument);
  if (error == 0 && !exempt)
    note_thread(*thread);
  return error;
}
CUDAQ_REPLACED int pthread_join(pthread_t thread, void **result) {
  static const auto real = next<decltype(&pthread_join)>("pthread_join");
  forget_thread(thread); // before the join: afterwards the system may use the same value for another thread
  return real(thread, result);
}
CUDAQ_REPLACED int pthread_setaffinity_np(pthread_t, std::size_t, const cpu_set_t *) noexcept {
  return hits("pthread_setaffinity_np") ? EINVAL : 0;
}
CUDAQ_REPLACED int pthread_setschedparam(pthread_t, int, const sched_param *) noexcept {
  return hits("pthread_setschedparam") ? EPERM : 0;
}
CUDAQ_REPLACED void *mmap(void *at, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  static const auto real = next<decltype(&mmap)>("mmap");
  if (hits("mmap")) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  void *const block = real(at, bytes, protection, flags & ~MAP_HUGETLB, file, offset);
  mappings += block != MAP_FAILED;
  return block;
}
CUDAQ_REPLACED int munmap(void *at, std::size_t bytes) noexcept {
  static const auto real = next<decltype(&munmap)>("munmap");
  if (hits("munmap")) {
    errno = ENOMEM;
    return -1;
  }
  const int error = real(at, bytes);
  mappings -= error == 0;
  return error;
}
CUDAQ_REPLACED long syscall(long number, ...) noexcept {
  using syscall_t = long (*)(long, long, long, long, long, long, long);
  static const auto real = next<syscall_t>("syscall");
  long a[6];
  va_list given;
  va_start(given, number);
  for (long &argument : a)
    argument = va_arg(given, long);
  va_end(given);
  if (number != SYS_mbind)
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (!hits("mbind"))
    return 0;
  errno = EPERM;
  return -1;
}
#undef CUDAQ_REPLACED
}
