// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoders/propagation/gf2_elimination.h"
#include "lib/qec/decoders/propagation/tanner_graph.h"
#include "lib/qec/decoders/stop_check.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

/// Ordered-statistics decoding. OSD-0 goes through the columns, likeliest error first, and keeps each column that does
/// not depend on those kept before. As soon as the syndrome is a sum of columns kept, that sum is the answer. The
/// combination sweep (order w > 0) keeps a whole basis, and also tries to add columns outside the basis: each alone,
/// and each pair of the w likeliest. The answer is the set of least weight, the sum of log((1 - p) / p).
class ordered_statistics {
public:
  /// `graph` must outlive the instance. `rank`: the number of its independent columns.
  ordered_statistics(const tanner_graph &graph, std::uint32_t rank, std::uint32_t order);

  /// The graph has another probability of this column than before: from now on it counts.
  void reload(std::uint32_t column) noexcept;

  /// Words of a syndrome: bit c % 64 of word c / 64 is check c.
  std::size_t words() const noexcept { return elimination_.words(); }

  /// Finds a set of columns with the syndrome, which must have a solution. `score`: for each column; the lower, the
  /// likelier an error; of equal ones the first counts as likelier. Returns ok, or what `stop` returned after some
  /// columns: then solution() is the best set so far, if has_solution().
  decode_status solve(std::span<const std::uint64_t> syndrome, std::span<const double> score,
                      stop_check &stop) noexcept;
  bool has_solution() const noexcept { return elimination_.solved(); }
  /// Valid until the next solve().
  const std::vector<std::uint32_t> &solution() const noexcept { return solution_; }

private:
  /// Weights are integers, so that sums do not depend on their order.
  using weight = std::int64_t;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// Sorts a next part of order_ that begins at `begin`. Returns its end.
  std::size_t sort_next(std::size_t begin, std::span<const double> score) noexcept;
  decode_status keep_columns(std::span<const double> score, stop_check &stop) noexcept;
  decode_status sweep(stop_check &stop) noexcept;
  /// The change of the weight if the columns with the reduced form `reduced` and the weight `own` are added. Stops at
  /// `limit`: the result is then at least `limit`.
  weight change(std::span<const std::uint64_t> reduced, weight own, weight limit) const noexcept;

  const tanner_graph &graph_;
  const std::uint32_t sweep_order_;
  const std::uint32_t rank_;
  gf2_elimination elimination_;
  std::vector<weight> weight_;
  std::vector<weight> row_weight_;           ///< of the column at each pivot row
  std::vector<std::uint32_t> order_;         ///< all columns
  std::vector<std::uint32_t> outside_;       ///< columns outside the basis, likeliest first
  std::vector<std::uint64_t> first_reduced_; ///< reduced forms of the first sweep_order_ of outside_, and room for one
  std::uint32_t added_[2] = {kNone, kNone};  ///< the columns outside the basis that the answer has
  std::vector<std::uint64_t> added_reduced_; ///< the sum of their reduced forms
  std::vector<std::uint32_t> solution_;
};

} // namespace cudaq::qec::realtime
