// SPDX-License-Identifier: Apache-2.0
// One iteration of min-sum belief propagation: a sweep over all checks, then one over all columns.
#pragma once

#include "lib/qec/decoders/relay_bp/grouped_graph.h"

#include <cstdint>

namespace cudaq::qec::realtime {

/// What the sweeps read and write, for T = float or double. All arrays begin at a multiple of sizeof(T) * kLanes bytes.
template <typename T>
struct min_sum_state {
  const grouped_graph *graph;
  T *messages;             ///< for each cell
  const T *syndrome_sign;  ///< for each lane of the checks: -0.0 if the check has an event, else 0.0
  const T *prior;          ///< for each lane of the columns: (1 - gamma) * log-odds
  const T *gamma;          ///< the memory strength of each lane of the columns
  T *posterior;            ///< of each lane of the columns; in: of the iteration before
  T *prefix;               ///< room for max_rows vectors
  T *answers;              ///< the same
  std::uint32_t *decision; ///< out: the columns whose posterior is at most 0, in the order of the lanes
};

/// Messages of checks are at most this: with float so small that sums keep the differences between columns.
template <typename T>
inline constexpr T kLargestMessage = static_cast<T>(sizeof(T) == sizeof(float) ? 65536 : 1e300);

/// A check answers each of its messages with the product of the signs and the least magnitude of the others, times
/// `scale`. A column takes the memory of its posterior into its prior, adds all answers (first to last), and sends each
/// check the sum without that check's answer (the sum before it, plus the sum after it, last to first).
///
/// The sums have one order for every instruction set, without fused multiplications: all variants give the same bits.
template <typename T>
struct min_sum_sweeps {
  void (*checks)(const min_sum_state<T> &state, T scale) noexcept;
  std::size_t (*columns)(const min_sum_state<T> &state) noexcept; ///< returns the length of the decision
  const char *instruction_set;
};

/// The quickest variant of this processor; `plain`: that without special instructions, which runs everywhere.
template <typename T>
min_sum_sweeps<T> choose_min_sum_sweeps(bool plain = false) noexcept;

} // namespace cudaq::qec::realtime
