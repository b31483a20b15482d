// SPDX-License-Identifier: Apache-2.0
// Access to words that two threads, or a CPU and a device, share. All code uses these functions for such words. Only
// this file casts away volatile, and only this file names a memory order.
//
//   order                         used for
//   acquire load, release store   publishing data with a flag; on x86-64 plain moves, on aarch64 ldar/stlr, on sm_90
//                                 ld.acquire.sys/st.release.sys
//   acq_rel compare-and-swap      taking a role or a job for which several threads compete. Host threads compete for
//                                 host words, threads of one device for words of that device: a device's
//                                 read-modify-write on host memory is not atomic against the CPU
//   relaxed                       gauges, which order nothing
//
// The library uses no fences: each order belongs to the access that needs it, where a race detector can check it. The
// one exception are fence_posted_stores and fence_posted_loads. They order accesses to memory with a write-combining
// mapping, whose stores leave the CPU in any order. No order of the language reaches that memory: a release store is a
// plain store on x86-64.
//
// nvcc compiles the functions with libcu++, for both sides. A host compiler has std::atomic_ref for them: it makes the
// same instructions, and libcu++'s header would take longer to compile than most files that include this one.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"

#include <cstring>
#include <version>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif
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

/// Loads the first 8 bytes of a request in its slot. They are written with one store: on a shared ring, a dispatcher
/// may read them while another thread writes or answers the request.
CUDAQ_REALTIME_HOST_DEVICE inline std::uint64_t load_first_word(const std::uint8_t *slot) {
  return load_acquire(*reinterpret_cast<const volatile std::uint64_t *>(slot));
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

/// Stores the word that load_first_word reads. Relaxed: the request's flag orders it.
CUDAQ_REALTIME_HOST_DEVICE inline void store_first_word(std::uint8_t *slot, std::uint64_t word) {
  store_relaxed(*reinterpret_cast<volatile std::uint64_t *>(slot), word);
}

// --- words of a frame in a slot ---
//
// A peer that breaks the protocol may write a slot while a dispatcher reads it. The compiler must make one access of
// each of these functions (on a CPU two, for 16 bytes): it may not load again later, when the word holds another value
// than the one that was checked. They order nothing: the slot's flag does.

/// Aligned to 16 in a frame, if the ring is.
struct alignas(16) word16 {
  std::uint32_t part[4];
};

/// Loads a word of a frame from its slot. Word: std::uint64_t or word16.
template <class Word>
CUDAQ_REALTIME_HOST_DEVICE inline Word load_frame(const std::uint8_t *at);
template <>
CUDAQ_REALTIME_HOST_DEVICE inline std::uint64_t load_frame(const std::uint8_t *at) {
  return load_relaxed(*reinterpret_cast<const volatile std::uint64_t *>(at));
}
template <>
CUDAQ_REALTIME_HOST_DEVICE inline word16 load_frame(const std::uint8_t *at) {
  word16 w;
#if defined(__CUDA_ARCH__)
  asm volatile("ld.relaxed.sys.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w.part[0]), "=r"(w.part[1]), "=r"(w.part[2]), "=r"(w.part[3])
               : "l"(at)
               : "memory");
#else
  const std::uint64_t halves[2] = {load_frame<std::uint64_t>(at), load_frame<std::uint64_t>(at + 8)};
  std::memcpy(&w, halves, sizeof(w));
#endif
  return w;
}

/// Stores a word of a frame in its slot, or in other memory. On a device a plain store.
template <class Word>
CUDAQ_REALTIME_HOST_DEVICE inline void store_frame(std::uint8_t *at, const Word &word) {
#if defined(__CUDA_ARCH__)
  *reinterpret_cast<Word *>(at) = word;
#else
  if constexpr (sizeof(Word) == 16) {
    std::uint64_t halves[2];
    std::memcpy(halves, &word, sizeof(word));
    store_relaxed(*reinterpret_cast<volatile std::uint64_t *>(at), halves[0]);
    store_relaxed(*reinterpret_cast<volatile std::uint64_t *>(at + 8), halves[1]);
  } else {
    store_relaxed(*reinterpret_cast<volatile Word *>(at), word);
  }
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

/// Counts one arrival in a word that the blocks of a grid share. A thread that reads the count with acquire sees all
/// writes before the arrivals that it counts.
CUDAQ_REALTIME_HOST_DEVICE inline void arrive(std::uint32_t &word) {
  word_ref<std::uint32_t, thread_scope_device>(word).fetch_add(1, order::memory_order_release);
}

// --- stores of a CPU to device memory (CUDAQ_MEMORY_DEVICE_RX) ---

/// What the CPU sends to write-combining memory as one write, if all of it is stored at once.
inline constexpr std::size_t kLineBytes = 64;

/// All stores before it reach their memory before all stores after it, also in write-combining memory.
inline void fence_posted_stores() {
#if defined(__x86_64__)
  _mm_sfence();
#elif defined(__aarch64__)
  asm volatile("dmb oshst" ::: "memory");
#else
#error "fence_posted_stores: a processor without a known fence"
#endif
}

/// All loads before it are done before all loads after it, also of write-combining memory.
inline void fence_posted_loads() {
#if defined(__x86_64__)
  _mm_lfence();
#else
  asm volatile("dmb oshld" ::: "memory");
#endif
}

/// Stores one line, past the caches. `to`: aligned to kLineBytes. Orders nothing.
inline void store_line(std::uint8_t *to, const std::uint8_t *from) {
#if defined(__x86_64__)
  for (std::size_t at = 0; at < kLineBytes; at += sizeof(__m128i)) {
    __m128i part;
    std::memcpy(&part, from + at, sizeof(part));
    _mm_stream_si128(reinterpret_cast<__m128i *>(to + at), part);
  }
#else
  std::memcpy(to, from, kLineBytes);
#endif
}

/// A word that the library owns and host threads share.
template <class T>
class shared_word {
public:
  shared_word() = default;
  explicit shared_word(T value) : value_(value) {}

  T load() const { return load_acquire(value_); }
  void store(T value) { store_release(value_, value); }
  T peek() const { return load_relaxed(value_); }
  void set(T value) { store_relaxed(value_, value); }

  /// Changes the word from `expected` to `desired`. Returns false, and changes nothing, if it holds another value. In
  /// both cases the caller sees all writes before the value that it found.
  bool claim(T expected, T desired) {
    return word_ref<T>(value_).compare_exchange_strong(expected, desired, order::memory_order_acq_rel,
                                                       order::memory_order_acquire);
  }

  /// Adds n, with wrap-around, and returns the previous value of the word.
  T add(T n) { return word_ref<T>(value_).fetch_add(n, order::memory_order_acq_rel); }

  // Bits that several threads set and clear. raise_bits returns the previous value of the word.
  T raise_bits(T bits) { return word_ref<T>(value_).fetch_or(bits, order::memory_order_acq_rel); }
  void clear_bits(T bits) { word_ref<T>(value_).fetch_and(~bits, order::memory_order_acq_rel); }

private:
  T value_{};
};

/// A statistics counter. bump: for one writing thread and any number of readers. add: for any number of writing
/// threads. A thread that reads a count sees all counts before it: so the number of ends is never above the number of
/// beginnings.
class counter {
public:
  void bump(std::uint64_t n = 1) { store_release(value_, load_relaxed(value_) + n); }
  void add(std::uint64_t n = 1) { word_ref<std::uint64_t>(value_).fetch_add(n, order::memory_order_acq_rel); }
  std::uint64_t value() const { return load_acquire(value_); }

private:
  std::uint64_t value_ = 0;
};

} // namespace cudaq::realtime::detail
