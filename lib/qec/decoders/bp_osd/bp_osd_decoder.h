// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decode_status.h"
#include "lib/qec/decoders/bp_osd/bp_osd_options.h"
#include "lib/qec/decoders/bp_osd/ordered_statistics.h"
#include "lib/qec/decoders/bp_osd/product_sum.h"
#include "lib/qec/decoders/bp_osd/small_error_sets.h"
#include "lib/qec/decoders/propagation/graph_syndrome.h"
#include "lib/qec/decoders/propagation/tanner_graph.h"
#include "lib/qec/decoders/relay_bp/relay_bp.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

/// Belief propagation, and ordered statistics for the shots on which it does not converge: a decoder for models whose
/// errors flip any number of detectors. If one or two errors explain the events and weigh less than what these found,
/// they are the answer. References: P. Panteleev and G. Kalachev, "Degenerate quantum LDPC codes with good finite
/// length performance", Quantum 5, 585 (2021); J. Roffe, D. R. White, S. Burton and E. Campbell, "Decoding across the
/// quantum low-density parity-check code landscape", Phys. Rev. Research 2, 043423 (2020).
///
/// An instance belongs to one thread. No call allocates. The answer depends only on the model, the options and the set
/// of events.
class bp_osd {
public:
  bp_osd(tanner_graph graph, const bp_osd_options &options);
  // The parts refer to the graph.
  bp_osd(const bp_osd &) = delete;
  bp_osd &operator=(const bp_osd &) = delete;

  const tanner_graph &graph() const noexcept { return graph_; }
  /// To change probabilities between two shots: reload() each column that has another one.
  tanner_graph &graph() noexcept { return graph_; }
  void reload(std::uint32_t column) noexcept;

  /// Finds columns that cause the events together with the graph's certain errors: see correction(). `events` are in
  /// range and without duplicates. Returns ok, no_solution, or what `stop` returned: before an iteration of belief
  /// propagation or a part of the ordered statistics.
  decode_status solve(std::span<const std::uint64_t> events, stop_check stop = {}) noexcept;

  /// Whether the last solve() found columns: with ok, and if `stop` ended the combination sweep.
  bool has_solution() const noexcept { return has_solution_; }
  /// These columns.
  std::span<const std::uint32_t> correction() const noexcept { return correction_; }
  /// The sum of log((1 - p) / p) over these columns.
  double weight_of(std::span<const std::uint32_t> columns) const noexcept { return small_sets_.weight_of(columns); }
  /// Iterations of belief propagation in the last solve(); 0 if no column was needed, or there was no solution.
  std::uint64_t iterations() const noexcept { return iterations_; }
  /// Whether the last solve() used ordered statistics.
  bool used_ordered_statistics() const noexcept { return used_ordered_statistics_; }

private:
  /// Belief propagation: its status. After not_converged score_ is set.
  decode_status propagate(stop_check &stop) noexcept;

  tanner_graph graph_;
  graph_syndrome syndrome_;
  std::optional<relay_bp> min_sum_; ///< one of these two is there
  std::optional<product_sum> product_sum_;
  std::vector<double> score_; ///< of each column, for ordered statistics
  ordered_statistics statistics_;
  small_error_sets small_sets_;
  std::span<const std::uint32_t> correction_;
  std::uint64_t iterations_ = 0;
  bool used_ordered_statistics_ = false;
  bool has_solution_ = false;
};

} // namespace cudaq::qec::realtime
