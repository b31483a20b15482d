// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoders/propagation/tanner_graph.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

/// Finds the lightest set of one or two columns with a syndrome. One column of a pair has the first check of the
/// syndrome; for each column of that check, a hash table tells which column has the other checks.
///
/// Example: the columns are a = {0, 1}, b = {1, 2}, c = {0}, d = {2}, and the syndrome is {0, 2}. The columns of
/// check 0 are a and c. {0, 2} + {0, 1} = {1, 2} is b, and {0, 2} + {0} = {2} is d: the lighter one of {a, b} and
/// {c, d}.
///
/// An instance belongs to one thread. Only the constructor allocates.
class small_error_sets {
public:
  /// `graph` must outlive the instance.
  explicit small_error_sets(const tanner_graph &graph);

  /// The graph has another probability of this column than before: from now on it counts.
  void reload(std::uint32_t column) noexcept;

  /// The lightest set of one or two columns whose checks sum up to `syndrome` (ascending, not empty), of equal weights
  /// the first one. Empty if none weighs less than `limit`. The result is valid until the next call.
  std::span<const std::uint32_t> lighter_than(double limit, std::span<const std::uint32_t> syndrome) noexcept;

  /// The sum of log((1 - p) / p).
  double weight_of(std::span<const std::uint32_t> columns) const noexcept;

private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// The likeliest column whose checks have this key, or kNone.
  std::uint32_t find(std::uint64_t key) const noexcept { return table_[place_of(key)]; }
  std::size_t place_of(std::uint64_t key) const noexcept;
  bool has_syndrome(std::size_t count, std::span<const std::uint32_t> syndrome) noexcept;

  const tanner_graph &graph_;
  std::vector<double> weight_;                ///< of each column
  std::vector<std::uint64_t> key_;            ///< of each column: a hash of its checks
  std::vector<std::uint32_t> table_;          ///< columns by key; linear probing, at least 3/4 empty
  std::vector<std::uint32_t> first_at_check_; ///< num_checks + 1 indices into at_check_
  std::vector<std::uint32_t> at_check_;       ///< the columns of each check, ascending
  std::size_t largest_ = 0;                   ///< the most checks of a column
  std::vector<std::uint32_t> sum_;            ///< room for the checks of two columns
  std::uint32_t columns_[2] = {};
};

} // namespace cudaq::qec::realtime
