// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoders/bp_osd/bp_osd_options.h"
#include "lib/qec/decoders/bp_osd/tanner_graph.h"
#include "lib/qec/decoders/stop_check.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

/// Belief propagation on a Tanner graph with the flooding schedule: in each iteration first all checks, then all
/// columns send messages.
///
/// Min-sum: a message is a log-odds ratio L = log(P(no error) / P(error)), as a float. A check sends the product of the
/// signs and the least magnitude of the other messages, times the scaling factor. Product-sum: no logarithm is needed.
/// A column sends t = tanh(L / 2), and a check answers with exp(-L), where tanh(L / 2) is the product of the others:
/// (1 - t) / (1 + t). So all steps of both methods are basic arithmetic, and the result does not depend on the math
/// library.
class belief_propagation {
public:
  /// `graph` is copied as far as it is needed.
  belief_propagation(const tanner_graph &graph, const bp_osd_options &options);

  /// `syndrome`: 0 or 1 for each check. ok: the hard decision of an iteration has this syndrome; not_converged: none
  /// has; else what `stop` returned before an iteration.
  decode_status run(std::span<const std::uint8_t> syndrome, stop_check &stop) noexcept;

  /// The columns of the last hard decision, ascending.
  const std::vector<std::uint32_t> &decision() const noexcept { return decision_; }
  /// For each column: the lower, the likelier an error. Log-odds ratios (min-sum), or their exponentials.
  std::span<const double> score() const noexcept { return score_; }
  std::uint32_t iterations() const noexcept { return iterations_; }

private:
  void min_sum_checks(std::span<const std::uint8_t> syndrome, float scale) noexcept;
  void min_sum_columns() noexcept;
  void product_checks(std::span<const std::uint8_t> syndrome) noexcept;
  void product_columns() noexcept;
  bool decision_fits(std::span<const std::uint8_t> syndrome) noexcept;

  const bp_osd_options options_;
  std::uint32_t iterations_ = 0;
  // Messages are stored by check: those of check c are [first_of_check_[c], first_of_check_[c + 1]).
  std::vector<std::uint32_t> first_of_check_;
  std::vector<std::uint32_t> first_of_column_; ///< into place_ and check_at_
  std::vector<std::uint32_t> place_;           ///< of each message of a column, in the order by check
  std::vector<std::uint32_t> check_at_;
  std::vector<float> log_odds_; ///< min-sum: of each column, before the shot
  std::vector<float> first_messages_;
  std::vector<float> messages_;
  std::vector<double> odds_; ///< product-sum: P(error) / P(no error) of each column, before the shot
  std::vector<double> product_messages_;
  std::vector<double> prefix_; ///< room for the largest check
  std::vector<double> score_;
  std::vector<std::uint32_t> decision_; ///< room for all columns
  std::vector<std::uint8_t> remaining_; ///< syndrome minus that of the decision
};

} // namespace cudaq::qec::realtime
