// SPDX-License-Identifier: Apache-2.0
// Words that the library owns and only host threads share.
#pragma once

#include "cudaq/realtime/detail/base/flag_word.h"

namespace cudaq::realtime::detail {

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
