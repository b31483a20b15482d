// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

namespace cudaq::realtime::detail {

/// A hash of bytes, which shows whether a request is a repeated one. Not cryptographic: it finds mistakes of a
/// peer, not attacks. `seed`: what else the requests have in common.
inline std::uint64_t content_hash(std::uint64_t seed, std::span<const std::uint8_t> bytes) noexcept {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15u;
  std::uint64_t hash = seed * kFactor;
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t n = std::min(sizeof word, bytes.size());
    std::memcpy(&word, bytes.data(), n);
    hash = (hash ^ word) * kFactor;
    hash ^= hash >> 29;
    bytes = bytes.subspan(n);
  }
  return hash;
}

/// FNV-1a with 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv) of a range of bytes: the same on all machines, so files
/// may keep it. Not cryptographic. The 32-bit hash of names of functions is `fnv1a_hash`.
template <class Bytes>
constexpr std::uint64_t fnv1a_64(const Bytes &bytes) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const auto byte : bytes) {
    static_assert(sizeof byte == 1);
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  }
  return hash;
}

} // namespace cudaq::realtime::detail
