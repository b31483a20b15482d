// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoders/decoder_name.h"
#include "lib/qec/decoding/splitmix.h"

#include <cstdint>

namespace cudaq::qec::realtime {

inline constexpr std::uint32_t kMaxRelayIterations = 1000000;
inline constexpr std::uint32_t kMaxRelaySets = 1000000;

/// The names are those of the reference implementation (package relay_bp on PyPI).
struct relay_bp_options {
  /// Factor of the messages of checks. 0: 1 - 2^-(k / alpha_iteration_scaling_factor) in iteration k of a leg.
  double alpha = 1;
  double alpha_iteration_scaling_factor = 1;
  double gamma0 = 0.1;             ///< memory strength of all columns in leg 0
  std::uint32_t pre_iter = 80;     ///< the most iterations of leg 0
  std::uint32_t num_sets = 300;    ///< the most legs after leg 0
  std::uint32_t set_max_iter = 60; ///< the most iterations of each of them
  double gamma_lowest = -0.24;     ///< memory strengths of later legs are drawn from this interval
  double gamma_highest = 0.66;
  std::uint32_t stop_nconv = 1; ///< legs with a solution after which the lightest solution is the answer
  std::uint64_t seed = 0;       ///< of the memory strengths
  bool double_precision = false;
};

/// The options that these settings name; settings.error() has the fault.
relay_bp_options relay_bp_options_of(decoder_settings &settings);

/// The memory strength of a column in a leg, as a number from 0 to 1 (exclusive) before it is scaled to the interval: a
/// hash of its three arguments, so that strengths need no memory, and are the same on every machine.
constexpr double unit_strength(std::uint64_t seed, std::uint64_t leg, std::uint64_t column) noexcept {
  return static_cast<double>(splitmix(splitmix(seed + leg * kSplitmixStep) + column * kSplitmixStep) >> 11) * 0x1p-53;
}

} // namespace cudaq::qec::realtime
