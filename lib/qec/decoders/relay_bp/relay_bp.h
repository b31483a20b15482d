// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decode_status.h"
#include "lib/qec/decoders/propagation/tanner_graph.h"
#include "lib/qec/decoders/relay_bp/grouped_graph.h"
#include "lib/qec/decoders/relay_bp/min_sum_sweeps.h"
#include "lib/qec/decoders/relay_bp/relay_bp_options.h"
#include "lib/qec/decoders/stop_check.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

/// Relay belief propagation: legs of min-sum belief propagation in which each column remembers its posterior. A leg
/// begins with the posteriors of the leg before, but with new messages and other memory strengths, also negative ones;
/// that leads it out of the trap in which the leg before ended. References: T. Mueller et al., "Improved belief
/// propagation is sufficient for real-time decoding of quantum memory", arXiv:2506.01779; arXiv:2510.21600.
///
/// In double precision the iterations and corrections are those of the package relay_bp 0.2.1, bit for bit, if that is
/// given the same memory strengths. An instance belongs to one thread. No call after the constructor allocates.
class relay_bp {
public:
  /// `plain`: without special instructions of the processor; the results are the same.
  relay_bp(const tanner_graph &graph, const relay_bp_options &options, bool plain = false);
  ~relay_bp();
  relay_bp(const relay_bp &) = delete;
  relay_bp &operator=(const relay_bp &) = delete;

  /// `syndrome`: 0 or 1 for each check. ok: correction() has this syndrome. not_converged: no leg found a solution;
  /// correction() is the last decision of leg 0 of chain 0. Else what `stop` returned before an iteration; then
  /// correction() is the lightest solution so far, if has_solution().
  decode_status solve(std::span<const std::uint8_t> syndrome, stop_check stop = {}) noexcept;

  /// The graph has another probability of this column than before: from now on it counts. Allocates nothing.
  void reload(std::uint32_t column) noexcept;

  /// Whether correction() has the syndrome of the last solve().
  [[nodiscard]] bool has_solution() const noexcept { return has_solution_; }

  /// Columns, ascending. Valid until the next call.
  [[nodiscard]] std::span<const std::uint32_t> correction() const noexcept { return correction_; }
  /// The sum of log((1 - p) / p) over the columns of correction().
  [[nodiscard]] double weight() const noexcept { return weight_; }
  /// For each column its posterior after the last iteration of the last solve(), as a log-odds ratio: the lower, the
  /// likelier an error. With options.sums_posteriors the sum of those after all iterations of the last chain.
  void posteriors(std::span<double> of_columns) const noexcept;
  /// Iterations of all legs of all chains. That in which a leg finds a solution does not count.
  [[nodiscard]] std::uint64_t iterations() const noexcept { return iterations_; }
  /// "AVX2" or "plain".
  [[nodiscard]] const char *instruction_set() const noexcept;

private:
  template <typename T>
  struct arrays;

  template <typename T>
  decode_status solve_with(arrays<T> &a, std::span<const std::uint8_t> syndrome, stop_check &stop) noexcept;
  /// What a chain found. `status`: ok: it ended with a solution; not_converged: it has none, or was given up; else that
  /// of `stop`.
  struct chain_end {
    decode_status status = decode_status::not_converged;
    std::uint64_t steps = 0;          ///< iterations, all counted
    std::uint64_t units = UINT64_MAX; ///< weight of lightest_, if it is a solution
  };
  /// lightest_ is the lightest solution, else the last decision of leg 0. Given up after max_steps iterations.
  template <typename T>
  chain_end run_chain(arrays<T> &a, std::span<const std::uint8_t> syndrome, std::uint32_t chain,
                      std::uint64_t max_steps, stop_check &stop) noexcept;
  template <typename T>
  decode_status run_leg(arrays<T> &a, std::span<const std::uint8_t> syndrome, std::uint32_t leg,
                        std::uint64_t max_steps, std::uint64_t &steps, stop_check &stop) noexcept;
  template <typename T>
  void copy_posteriors(const arrays<T> &a, std::span<double> of_columns) const noexcept;
  template <typename T>
  void start_leg(arrays<T> &a, std::uint32_t chain, std::uint32_t leg) noexcept;
  std::uint64_t units_of(std::span<const std::uint32_t> columns) const noexcept;
  bool decision_fits(std::span<const std::uint8_t> syndrome) noexcept;

  const tanner_graph &graph_;
  const relay_bp_options options_;
  const grouped_graph groups_;
  std::vector<std::uint32_t> lane_of_;   ///< of each column
  std::vector<double> log_odds_;         ///< of each column
  std::vector<std::uint64_t> units_;     ///< the same, as weight_units
  std::unique_ptr<arrays<float>> float_; ///< one of these two is there
  std::unique_ptr<arrays<double>> double_;
  std::vector<std::uint32_t> decision_;    ///< room for all columns
  std::span<const std::uint32_t> decided_; ///< the columns of the last decision, in the order of the groups
  std::vector<std::uint8_t> remaining_;    ///< syndrome minus that of the decision
  std::vector<std::uint32_t> lightest_;    ///< of a chain
  std::vector<std::uint32_t> correction_;
  bool has_solution_ = false;
  double weight_ = 0;
  std::uint64_t iterations_ = 0;
};

} // namespace cudaq::qec::realtime
