// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoders/decoder_name.h"
#include "lib/qec/decoders/relay_bp/relay_strengths.h"

#include <cmath>
#include <cstdint>

namespace cudaq::qec::realtime {

inline constexpr std::uint32_t kMaxRelayIterations = 1000000;
inline constexpr std::uint32_t kMaxRelaySets = 1000000;
inline constexpr std::uint32_t kMaxRelayChains = 1024;

/// Which chain of an ensemble gives the answer. A chain ends after `stop_nconv` solutions or all legs, and offers its
/// lightest solution. Equal offers: the chain of the lowest number.
enum class ensemble_mode : std::uint32_t {
  least_weight, ///< the lightest of all chains, which run to their ends
  in_step,      ///< that of the chain that ended after the fewest iterations, as if all did each iteration together
  first         ///< that of the chain that ended first by the clock: on a GPU only, where chains run at the same time
};

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
  std::uint32_t ensemble = 1; ///< chains of legs, each with strengths of its own
  ensemble_mode mode = ensemble_mode::least_weight;
  bool sums_posteriors = false; ///< relay_bp::posteriors() adds up all iterations; no setting of the decoder

  [[nodiscard]] relay_strengths strengths() const noexcept {
    return {gamma0, gamma_lowest, gamma_highest - gamma_lowest, seed};
  }
  /// The factor of the messages of checks in iteration k of a leg, from 1.
  [[nodiscard]] double scale(std::uint32_t k) const noexcept {
    return alpha != 0 ? alpha : 1 - std::exp2(-(k / alpha_iteration_scaling_factor));
  }
};

/// The options that these settings name; settings.check() has the fault. `on_gpu`: for a decoder that runs all chains
/// at the same time, with `float` only.
relay_bp_options relay_bp_options_of(decoder_settings &settings, bool on_gpu = false);

} // namespace cudaq::qec::realtime
