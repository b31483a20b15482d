// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace cudaq::realtime::detail {

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
