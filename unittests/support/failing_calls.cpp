// SPDX-License-Identifier: Apache-2.0
#include "unittests/support/failing_calls.h"

#include <cerrno>
#include <cstdlib>
#include <dlfcn.h>
#include <new>
#include <pthread.h>

namespace {

using namespace cudaq::realtime::test;
using injection::live;

bool fails(fault kind) {
  std::atomic<long> &left = injection::calls_left[static_cast<int>(kind)];
  if (left.load(std::memory_order_relaxed) < 0 || spared::now() || left.fetch_sub(1) != 0)
    return false;
  ++injection::injected;
  return true;
}
void *allocate(std::size_t bytes, std::size_t alignment) {
  if (fails(fault::allocation))
    throw std::bad_alloc();
  void *memory = nullptr;
  if (posix_memalign(&memory, alignment, bytes == 0 ? 1 : bytes) != 0)
    throw std::bad_alloc();
  ++live;
  return memory;
}
void release(void *memory) noexcept {
  live -= memory != nullptr;
  std::free(memory);
}

} // namespace

// Not inline: if a compiler inlines only one of new and delete, it warns of a free that does not match.
#define CUDAQ_TEST_NEW [[gnu::noinline]] void *operator new
#define CUDAQ_TEST_DELETE [[gnu::noinline]] void operator delete
CUDAQ_TEST_NEW(std::size_t n) { return allocate(n, 16); }
CUDAQ_TEST_NEW(std::size_t n, std::align_val_t a) { return allocate(n, static_cast<std::size_t>(a)); }
CUDAQ_TEST_DELETE(void *p) noexcept { release(p); }
CUDAQ_TEST_DELETE(void *p, std::size_t) noexcept { release(p); }
CUDAQ_TEST_DELETE(void *p, std::align_val_t) noexcept { release(p); }
CUDAQ_TEST_DELETE(void *p, std::size_t, std::align_val_t) noexcept { release(p); }
#undef CUDAQ_TEST_NEW
#undef CUDAQ_TEST_DELETE

extern "C" __attribute__((visibility("default"))) int
pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) noexcept {
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return fails(fault::thread) ? EAGAIN : real(thread, attributes, body, argument);
}
