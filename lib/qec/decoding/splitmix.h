// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decode_status.h"

#include <cstdint>

namespace cudaq::qec::realtime {

inline constexpr std::uint64_t kSplitmixStep = 0x9e3779b97f4a7c15;

/// The output function of splitmix64: each bit of the result depends on each bit of z.
CUDAQ_QEC_HOST_DEVICE constexpr std::uint64_t splitmix(std::uint64_t z) noexcept {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

} // namespace cudaq::qec::realtime
