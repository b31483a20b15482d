// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace cudaq::qec::realtime {

/// A bit for each observable, as a number of 256 bits. It has what PyMatching does with its mask of 64 bits, so it can
/// take the place of that type. Bits that are shifted out are lost.
struct wide_mask {
  static constexpr std::size_t kWords = 4;

  std::array<std::uint64_t, kWords> words{};

  constexpr wide_mask() = default;
  constexpr wide_mask(std::uint64_t low) noexcept { words[0] = low; }
  constexpr operator std::uint8_t() const noexcept { return static_cast<std::uint8_t>(words[0]); }

  constexpr wide_mask &operator^=(const wide_mask &other) noexcept {
    for (std::size_t k = 0; k < kWords; ++k)
      words[k] ^= other.words[k];
    return *this;
  }
  constexpr wide_mask &operator&=(const wide_mask &other) noexcept {
    for (std::size_t k = 0; k < kWords; ++k)
      words[k] &= other.words[k];
    return *this;
  }
  friend constexpr wide_mask operator^(wide_mask a, const wide_mask &b) noexcept { return a ^= b; }
  friend constexpr wide_mask operator&(wide_mask a, const wide_mask &b) noexcept { return a &= b; }
  friend constexpr bool operator==(const wide_mask &a, const wide_mask &b) noexcept = default;

  // By any type of number: else the conversion above competes.
  template <std::integral Number>
  friend constexpr wide_mask operator<<(const wide_mask &a, Number by) noexcept {
    const auto bits = static_cast<std::size_t>(by);
    wide_mask shifted;
    for (std::size_t k = bits / 64; k < kWords; ++k) {
      shifted.words[k] = a.words[k - bits / 64] << bits % 64;
      if (bits % 64 != 0 && k != bits / 64)
        shifted.words[k] |= a.words[k - bits / 64 - 1] >> (64 - bits % 64);
    }
    return shifted;
  }
  template <std::integral Number>
  friend constexpr wide_mask operator>>(const wide_mask &a, Number by) noexcept {
    const auto bits = static_cast<std::size_t>(by);
    wide_mask shifted;
    for (std::size_t k = 0; k + bits / 64 < kWords; ++k) {
      shifted.words[k] = a.words[k + bits / 64] >> bits % 64;
      if (bits % 64 != 0 && k + bits / 64 + 1 < kWords)
        shifted.words[k] |= a.words[k + bits / 64 + 1] << (64 - bits % 64);
    }
    return shifted;
  }
};

} // namespace cudaq::qec::realtime
