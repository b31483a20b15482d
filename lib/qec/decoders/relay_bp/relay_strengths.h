// SPDX-License-Identifier: Apache-2.0
// The memory strengths of relay-bp, and how the chains of an ensemble are compared. For host and device code: both give
// the same bits.
#pragma once

#include "cudaq/qec/decoding/decode_status.h"
#include "lib/qec/decoding/splitmix.h"

#include <cstdint>

namespace cudaq::qec::realtime {

/// a + b * c, rounded twice. Host code that includes this is compiled without fused multiplications.
CUDAQ_QEC_HOST_DEVICE inline double add_product(double a, double b, double c) noexcept {
#if defined(__CUDA_ARCH__)
  return __dadd_rn(a, __dmul_rn(b, c));
#else
  return a + b * c;
#endif
}

/// The memory strength of a column in a leg, as a number from 0 to 1 (exclusive) before it is scaled to the interval: a
/// hash of its three arguments, so that strengths need no memory, and are the same on every machine.
CUDAQ_QEC_HOST_DEVICE constexpr double unit_strength(std::uint64_t seed, std::uint64_t leg,
                                                     std::uint64_t column) noexcept {
  return static_cast<double>(splitmix(splitmix(seed + leg * kSplitmixStep) + column * kSplitmixStep) >> 11) * 0x1p-53;
}

/// The seed of a chain of an ensemble. Chain 0 has that of the options.
CUDAQ_QEC_HOST_DEVICE constexpr std::uint64_t seed_of_chain(std::uint64_t seed, std::uint32_t chain) noexcept {
  return chain == 0 ? seed : splitmix(seed + (std::uint64_t{chain} << 32));
}

/// Where memory strengths come from. Leg 0 of chain 0 has one strength for all columns; those of the other chains are
/// drawn, since a second chain with the same leg would find nothing more.
struct relay_strengths {
  double gamma0 = 0, lowest = 0, width = 0;
  std::uint64_t seed = 0;

  CUDAQ_QEC_HOST_DEVICE double of(std::uint32_t chain, std::uint32_t leg, std::uint32_t column) const noexcept {
    return chain == 0 && leg == 0 ? gamma0
                                  : add_product(lowest, width, unit_strength(seed_of_chain(seed, chain), leg, column));
  }
};

/// A weight as a whole number: sums of it do not depend on their order, so all chains are compared with the same
/// values on a CPU and on a GPU. log_odds: not negative, at most 745, the most for a double; the sum over a million
/// columns has less than 54 bits.
inline std::uint64_t weight_units(double log_odds) noexcept { return static_cast<std::uint64_t>(log_odds * 0x1p24); }

} // namespace cudaq::qec::realtime
