// SPDX-License-Identifier: Apache-2.0
// Access to words that two threads, or a CPU and a device, share. All code uses these functions for such words, and
// those of the two headers that build on them:
//
//   flag_word.h     flags, control words, counters, by functions
//   slot_memory.h   what a flag publishes: the words of a frame in its slot, stores of a CPU to device memory
//   shared_word.h   words of the library that only host threads share, as objects
//
// Only these files cast away volatile, name a memory order, or use a fence.
//
//   order                         used for
//   acquire load, release store   publishing data with a flag; on x86-64 plain moves, on aarch64 ldar/stlr, on sm_90
//                                 ld.acquire.sys/st.release.sys
//   acq_rel compare-and-swap      taking a role or a job for which several threads compete. Host threads compete for
//                                 host words, threads of one device for words of that device: a device's
//                                 read-modify-write on host memory is not atomic against the CPU
//   acquire compare-and-swap      claim_word: taking what a flag announces; relaxed if it fails
//   relaxed                       gauges, which order nothing
//
// The library uses no fences, except fence_posted_stores, fence_posted_loads, and fence_before_stores on a device: each
// order belongs to the access that needs it, where a race detector can check it.
//
// nvcc compiles the functions with libcu++, for both sides. A host compiler has std::atomic_ref for them: it makes the
// same instructions, and libcu++'s header would take longer to compile than most files that include this one.
#pragma once

#include "cudaq/realtime/detail/base/host_device.h"

#include <cstdint>
#include <version>
#if defined(__CUDACC__) || !defined(__cpp_lib_atomic_ref)
#define CUDAQ_REALTIME_LIBCUDACXX_ATOMICS
#include <cuda/atomic>
#else
#include <atomic>
#endif

namespace cudaq::realtime::detail {

#ifdef CUDAQ_REALTIME_LIBCUDACXX_ATOMICS
#undef CUDAQ_REALTIME_LIBCUDACXX_ATOMICS
namespace order = cuda;
using cuda::thread_scope;
using cuda::thread_scope_device;
using cuda::thread_scope_system;
template <class T, thread_scope Scope = thread_scope_system>
using word_ref = cuda::atomic_ref<T, Scope>;
#else
namespace order = std;
/// Threads that share a word. To a host compiler both are the threads of the program.
enum thread_scope { thread_scope_system, thread_scope_device };
template <class T, thread_scope = thread_scope_system>
using word_ref = std::atomic_ref<T>;
#endif

/// Loads a word that the caller owns (ring flag, shutdown word), with acquire.
template <class T, thread_scope Scope = thread_scope_system>
CUDAQ_REALTIME_HOST_DEVICE inline T load_acquire(const volatile T &word) {
  return word_ref<T, Scope>(const_cast<T &>(word)).load(order::memory_order_acquire);
}

/// Stores a word that the caller owns, with release.
template <class T, thread_scope Scope = thread_scope_system>
CUDAQ_REALTIME_HOST_DEVICE inline void store_release(volatile T &word, T value) {
  word_ref<T, Scope>(const_cast<T &>(word)).store(value, order::memory_order_release);
}

/// Loads a word that orders nothing (a counter of the caller).
template <class T>
CUDAQ_REALTIME_HOST_DEVICE inline T load_relaxed(const volatile T &word) {
  return word_ref<T>(const_cast<T &>(word)).load(order::memory_order_relaxed);
}

/// Stores a word that orders nothing.
template <class T>
CUDAQ_REALTIME_HOST_DEVICE inline void store_relaxed(volatile T &word, T value) {
  word_ref<T>(const_cast<T &>(word)).store(value, order::memory_order_relaxed);
}

/// One fence for several stores: all accesses before it come before each store_after_fence after it, for the CPU, too.
/// On a device each release store waits until the stores before it are acknowledged, over the bus 0.3 to 1.5 us; so
/// several words share one wait. On a host each of the stores is a release, which costs nothing there and which a race
/// detector checks.
CUDAQ_REALTIME_HOST_DEVICE inline void fence_before_stores() {
#if defined(__CUDA_ARCH__)
  cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_system);
#endif
}
template <class T>
CUDAQ_REALTIME_HOST_DEVICE inline void store_after_fence(volatile T &word, T value) {
#if defined(__CUDA_ARCH__)
  store_relaxed(word, value);
#else
  store_release(word, value);
#endif
}

/// Adds to a counter to which several threads of one device add; orders nothing.
CUDAQ_REALTIME_HOST_DEVICE inline void add_relaxed(volatile std::uint64_t &word, std::uint64_t n) {
  word_ref<std::uint64_t, thread_scope_device>(const_cast<std::uint64_t &>(word))
      .fetch_add(n, order::memory_order_relaxed);
}

// Bits that threads of one device set and clear. A thread that reads the word with acquire sees all writes before a
// clear.
CUDAQ_REALTIME_HOST_DEVICE inline void raise_device_bits(std::uint32_t &word, std::uint32_t bits) {
  word_ref<std::uint32_t, thread_scope_device>(word).fetch_or(bits, order::memory_order_relaxed);
}
CUDAQ_REALTIME_HOST_DEVICE inline void clear_device_bits(std::uint32_t &word, std::uint32_t bits) {
  word_ref<std::uint32_t, thread_scope_device>(word).fetch_and(~bits, order::memory_order_release);
}

/// Changes a word that the caller owns from `expected` to `desired`. Returns false, and changes nothing, if it holds
/// another value. Acquire if it succeeds; a failure orders nothing, so polling with it costs no more than a load.
template <class T, thread_scope Scope = thread_scope_system>
CUDAQ_REALTIME_HOST_DEVICE inline bool claim_word(volatile T &word, T expected, T desired) {
  return word_ref<T, Scope>(const_cast<T &>(word))
      .compare_exchange_strong(expected, desired, order::memory_order_acquire, order::memory_order_relaxed);
}

/// The word, which threads of one device share, becomes the least of itself and `value`. Orders nothing.
CUDAQ_REALTIME_HOST_DEVICE inline void lower_device_word(std::uint64_t &word, std::uint64_t value) {
  const word_ref<std::uint64_t, thread_scope_device> shared(word);
  std::uint64_t seen = shared.load(order::memory_order_relaxed);
  while (value < seen && !shared.compare_exchange_weak(seen, value, order::memory_order_relaxed)) {
  }
}

/// Counts one arrival in a word that the blocks of a grid share. A thread that reads the count with acquire sees all
/// writes before the arrivals that it counts.
CUDAQ_REALTIME_HOST_DEVICE inline void arrive(std::uint32_t &word) {
  word_ref<std::uint32_t, thread_scope_device>(word).fetch_add(1, order::memory_order_release);
}

} // namespace cudaq::realtime::detail
