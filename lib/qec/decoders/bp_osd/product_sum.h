// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decode_status.h"
#include "lib/qec/decoders/propagation/tanner_graph.h"
#include "lib/qec/decoders/stop_check.h"

#include <cstdint>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

/// Product-sum belief propagation on a Tanner graph with the flooding schedule: in each iteration first all checks,
/// then all columns send messages.
///
/// No logarithm is needed: a column sends t = tanh(L / 2), where L = log(P(no error) / P(error)), and a check answers
/// with exp(-L), where tanh(L / 2) is the product of the others: (1 - t) / (1 + t). So all steps are basic arithmetic,
/// and the result does not depend on the math library.
class product_sum {
public:
  /// `graph` is copied as far as it is needed. `most`: iterations, at least 1. `sums`: see score().
  product_sum(const tanner_graph &graph, std::uint32_t max_iterations, bool sums);

  /// From now on the column has this probability.
  void reload(std::uint32_t column, double probability) noexcept;

  /// `syndrome`: 0 or 1 for each check. ok: the hard decision of an iteration has this syndrome; not_converged: none
  /// has; else what `stop` returned before an iteration.
  decode_status run(std::span<const std::uint8_t> syndrome, stop_check &stop) noexcept;

  /// The columns of the last hard decision, ascending.
  const std::vector<std::uint32_t> &decision() const noexcept { return decision_; }
  /// For each column, the lower, the likelier an error: minus the odds P(error) / P(no error) after the last iteration,
  /// which differ where probabilities are all rounded to 1; or minus the sum of P(error) after all iterations.
  std::span<const double> score() const noexcept { return score_; }
  std::uint32_t iterations() const noexcept { return iterations_; }

private:
  void sweep_checks(std::span<const std::uint8_t> syndrome) noexcept;
  void sweep_columns() noexcept;
  bool decision_fits(std::span<const std::uint8_t> syndrome) noexcept;

  const std::uint32_t max_iterations_;
  const bool sums_;
  std::uint32_t iterations_ = 0;
  // Messages are stored by check: those of check c are [first_of_check_[c], first_of_check_[c + 1]).
  std::vector<std::uint32_t> first_of_check_;
  std::vector<std::uint32_t> first_of_column_; ///< into place_ and check_at_
  std::vector<std::uint32_t> place_;           ///< of each message of a column, in the order by check
  std::vector<std::uint32_t> check_at_;
  std::vector<double> odds_; ///< P(error) / P(no error) of each column, before the shot
  std::vector<double> messages_;
  std::vector<double> prefix_; ///< room for the largest check
  std::vector<double> score_;
  std::vector<std::uint32_t> decision_; ///< room for all columns
  std::vector<std::uint8_t> remaining_; ///< syndrome minus that of the decision
};

} // namespace cudaq::qec::realtime
