// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace cudaq::qec::realtime {

enum class bp_method { min_sum, product_sum };

inline constexpr std::uint32_t kMaxOsdOrder = 64;
inline constexpr std::uint32_t kMaxBpIterations = 1000000;

/// The defaults are those with the lowest logical error rate at a moderate time on the models of
/// docs/decoders/bp_osd.md.
struct bp_osd_options {
  /// Both methods have about the same logical error rate; min-sum is the faster one.
  bp_method method = bp_method::min_sum;
  /// At least 1. A shot on which belief propagation has not converged by then goes to ordered statistics; few shots
  /// converge later.
  std::uint32_t max_iterations = 30;
  /// Min-sum only: factor for the messages of checks, which min-sum overstates; at most 1. 0 means 1 - 2^-k in
  /// iteration k: small steps at first, and no damping later.
  double scaling = 0;
  /// 0: OSD-0. Above 0, at most kMaxOsdOrder: combination sweep (OSD-CS). It also tries each further column, and each
  /// pair of the first osd_order further columns, and takes the likeliest set.
  std::uint32_t osd_order = 10;
  /// Which posterior orders the columns for ordered statistics: the sum of those of all iterations, else that of the
  /// last one. Where belief propagation does not converge, the posteriors of some columns oscillate, and the last ones
  /// depend on the iteration in which it was stopped. After "accumulated log-likelihood ratios" in G. Li and G. Feng,
  /// arXiv:0710.5230.
  bool sums_posteriors = true;
};

} // namespace cudaq::qec::realtime
