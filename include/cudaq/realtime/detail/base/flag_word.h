// SPDX-License-Identifier: Apache-2.0
// Every word that two threads, or a CPU and a device, share goes through this file. It is the only one that casts away
// volatile and the only one that names a memory order.
//
// The orders, and what they are for:
//   acquire load, release store   publish data with a flag; on x86-64 plain moves, on aarch64 ldar/stlr, on sm_90
//                                 ld.acquire.sys/st.release.sys
//   acq_rel compare-and-swap      take a role or a job that several threads may want; host words among host threads,
//                                 device words among those of a device: a device's read-modify-write on host memory is
//                                 not atomic against the CPU
//   relaxed                       gauges, which order nothing
// There is no fence in the library: an order belongs to the access that needs it, where a race detector can see it.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"

#include <cuda/atomic>

namespace cudaq::realtime::detail {

/// Loads a word of the caller's (ring flag, shutdown word) with acquire.
template <class T, cuda::thread_scope Scope = cuda::thread_scope_system>
CUDAQ_REALTIME_HOST_DEVICE inline T load_acquire(const volatile T &word) {
  return cuda::atomic_ref<T, Scope>(const_cast<T &>(word)).load(cuda::memory_order_acquire);
}

/// Stores a word of the caller's with release.
template <class T, cuda::thread_scope Scope = cuda::thread_scope_system>
CUDAQ_REALTIME_HOST_DEVICE inline void store_release(volatile T &word, T value) {
  cuda::atomic_ref<T, Scope>(const_cast<T &>(word)).store(value, cuda::memory_order_release);
}

/// The first 8 bytes of a request in its slot, which appear at once: on a shared ring, a dispatcher may look at them
/// while the request is written or answered by others.
CUDAQ_REALTIME_HOST_DEVICE inline std::uint64_t load_first_word(const std::uint8_t *slot) {
  return load_acquire(*reinterpret_cast<const volatile std::uint64_t *>(slot));
}

/// Loads a word that orders nothing (a counter of the caller's).
template <class T>
CUDAQ_REALTIME_HOST_DEVICE inline T load_relaxed(const volatile T &word) {
  return cuda::atomic_ref<T, cuda::thread_scope_system>(const_cast<T &>(word)).load(cuda::memory_order_relaxed);
}

/// Stores a word that orders nothing.
template <class T>
CUDAQ_REALTIME_HOST_DEVICE inline void store_relaxed(volatile T &word, T value) {
  cuda::atomic_ref<T, cuda::thread_scope_system>(const_cast<T &>(word)).store(value, cuda::memory_order_relaxed);
}

/// Writes what load_first_word reads; the request's flag orders it.
CUDAQ_REALTIME_HOST_DEVICE inline void store_first_word(std::uint8_t *slot, std::uint64_t word) {
  store_relaxed(*reinterpret_cast<volatile std::uint64_t *>(slot), word);
}

/// Adds to a word that several threads of one device count in; orders nothing.
CUDAQ_REALTIME_HOST_DEVICE inline void add_relaxed(volatile std::uint64_t &word, std::uint64_t n) {
  cuda::atomic_ref<std::uint64_t, cuda::thread_scope_device>(const_cast<std::uint64_t &>(word))
      .fetch_add(n, cuda::memory_order_relaxed);
}

// Bits that threads of one device set and clear. Who reads the word with acquire sees what was written before a clear.
CUDAQ_REALTIME_HOST_DEVICE inline void raise_device_bits(std::uint32_t &word, std::uint32_t bits) {
  cuda::atomic_ref<std::uint32_t, cuda::thread_scope_device>(word).fetch_or(bits, cuda::memory_order_relaxed);
}
CUDAQ_REALTIME_HOST_DEVICE inline void clear_device_bits(std::uint32_t &word, std::uint32_t bits) {
  cuda::atomic_ref<std::uint32_t, cuda::thread_scope_device>(word).fetch_and(~bits, cuda::memory_order_release);
}

/// Takes a word of the caller's from `expected` to `desired`; false, and nothing happened, if it held something else. A
/// failure orders nothing, so polling with it costs no more than a load.
template <class T, cuda::thread_scope Scope = cuda::thread_scope_system>
CUDAQ_REALTIME_HOST_DEVICE inline bool claim_word(volatile T &word, T expected, T desired) {
  return cuda::atomic_ref<T, Scope>(const_cast<T &>(word))
      .compare_exchange_strong(expected, desired, cuda::memory_order_acquire, cuda::memory_order_relaxed);
}

/// Counts one arrival in a word that the blocks of a grid share: whoever reads the count with acquire sees what was
/// written before.
CUDAQ_REALTIME_HOST_DEVICE inline void arrive(std::uint32_t &word) {
  cuda::atomic_ref<std::uint32_t, cuda::thread_scope_device>(word).fetch_add(1, cuda::memory_order_release);
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

  /// Takes the word from `expected` to `desired`; false, and nothing happened, if it held something else. Either way
  /// the caller sees what was written before the value that it found.
  bool claim(T expected, T desired) {
    return cuda::atomic_ref<T, cuda::thread_scope_system>(value_).compare_exchange_strong(
        expected, desired, cuda::memory_order_acq_rel, cuda::memory_order_acquire);
  }

  // Bits that several threads set and clear. raise_bits returns what the word held before.
  T raise_bits(T bits) {
    return cuda::atomic_ref<T, cuda::thread_scope_system>(value_).fetch_or(bits, cuda::memory_order_acq_rel);
  }
  void clear_bits(T bits) {
    cuda::atomic_ref<T, cuda::thread_scope_system>(value_).fetch_and(~bits, cuda::memory_order_acq_rel);
  }

private:
  T value_{};
};

/// A statistics counter. bump: one writing thread, any number of readers. add: any number of writing threads. Whoever
/// reads a count sees everything that was counted before it, so that ends never run ahead of beginnings.
class counter {
public:
  void bump(std::uint64_t n = 1) { store_release(value_, load_relaxed(value_) + n); }
  void add(std::uint64_t n = 1) {
    cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>(value_).fetch_add(n, cuda::memory_order_acq_rel);
  }
  std::uint64_t value() const { return load_acquire(value_); }

private:
  std::uint64_t value_ = 0;
};

} // namespace cudaq::realtime::detail
