// SPDX-License-Identifier: Apache-2.0
// Random payloads, on the host and on a device. A check generates them again, so they need not be stored.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"

#include <cstdint>

namespace cudaq::realtime::tools {

/// Number `index` of the sequence that splitmix64 makes from `seed`.
CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint64_t random_word(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

} // namespace cudaq::realtime::tools
