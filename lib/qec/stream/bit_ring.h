// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/realtime/detail/base/shared_word.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

/// A bit for each detector of a stretch of an endless stream. One thread at a time writes; others may read bits that
/// were written before, also while later bits of the same word are written.
class bit_ring {
public:
  explicit bit_ring(std::uint64_t detectors) : words_(std::bit_ceil(detectors / 64 + 2)) {}

  /// Writes bits [from, from + count) of `bits` to detectors `at` and up, and clears the rest of the last word.
  void append(std::uint64_t at, std::span<const std::uint8_t> bits, std::uint64_t from, std::uint64_t count) noexcept {
    while (count != 0) {
      const std::uint64_t used = at % 64, part = std::min(count, 64 - used);
      const std::uint64_t value = load(bits, from, part) << used;
      word &to = words_[index(at / 64)];
      to.store(used == 0 ? value : to.peek() | value);
      at += part;
      from += part;
      count -= part;
    }
  }

  void flip(std::uint64_t detector) noexcept {
    word &to = words_[index(detector / 64)];
    to.store(to.peek() ^ std::uint64_t{1} << (detector % 64));
  }

  /// The bits of detectors 64 * at and up that lie in [begin, end).
  [[nodiscard]] std::uint64_t bits(std::uint64_t at, std::uint64_t begin, std::uint64_t end) const noexcept {
    return words_[index(at)].load() & mask(at, begin, end);
  }

  void clear(std::uint64_t begin, std::uint64_t end) noexcept {
    for (std::uint64_t at = begin / 64; at * 64 < end; ++at) {
      word &to = words_[index(at)];
      to.store(to.peek() & ~mask(at, begin, end));
    }
  }
  void clear() noexcept {
    for (word &one : words_)
      one.store(0);
  }

private:
  using word = cudaq::realtime::detail::shared_word<std::uint64_t>;

  std::uint64_t index(std::uint64_t at) const noexcept { return at & (words_.size() - 1); }
  static std::uint64_t mask(std::uint64_t at, std::uint64_t begin, std::uint64_t end) noexcept {
    std::uint64_t bits = ~std::uint64_t{0};
    if (begin > at * 64)
      bits <<= begin - at * 64;
    if (end < at * 64 + 64)
      bits &= (std::uint64_t{1} << (end - at * 64)) - 1;
    return bits;
  }
  /// Bits [from, from + count) as the low bits of a word; count is at most 64.
  static std::uint64_t load(std::span<const std::uint8_t> bits, std::uint64_t from, std::uint64_t count) noexcept {
    const std::uint64_t first = from / 8, shift = from % 8, bytes = (shift + count + 7) / 8;
    std::uint64_t value = 0;
    std::memcpy(&value, bits.data() + first, std::min<std::uint64_t>(bytes, 8));
    value >>= shift;
    if (bytes == 9)
      value |= std::uint64_t{bits[first + 8]} << (64 - shift);
    return count == 64 ? value : value & ((std::uint64_t{1} << count) - 1);
  }

  std::vector<word> words_;
};

} // namespace cudaq::qec::realtime
