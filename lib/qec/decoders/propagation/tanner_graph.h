// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/decoder_model.h"
#include "lib/qec/decoding/dem.h"
#include "lib/qec/decoding/event_bits.h"
#include "lib/qec/decoding/qec_expected.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace cudaq::qec::realtime {

inline constexpr std::uint32_t kNoCheck = UINT32_MAX;
inline constexpr std::uint32_t kNoColumn = UINT32_MAX;
/// The most checks of a graph. Ordered-statistics decoding keeps a square bit matrix of this size: 8 MiB.
inline constexpr std::uint32_t kMaxChecks = 8192;

/// Which errors of the model are equal: errors with equal detectors and equal observables form a group.
struct error_groups {
  std::vector<std::uint32_t> of_error; ///< for each error: its group, or kNoColumn if it has no effect
  std::vector<double> probability;     ///< of each error
  std::vector<std::uint32_t> column;   ///< of each group: its column, or kNoColumn
  std::map<std::uint32_t, std::vector<std::uint64_t>> loose; ///< observables of the groups without detectors
};

/// A detector error model as a parity-check matrix: a row (check) for each detector that some error flips, and a column
/// for each error mechanism.
///
/// A column is a whole error instruction: the components between `^` are added mod 2. (Their split is a suggestion to
/// matching decoders only.) Instructions with equal detectors and equal observables are one column; they count as
/// independent errors. Equal detectors with different observables are different columns. A column has at least one
/// check. Columns are in ascending order of their lists of detectors, then of observables, so the order of the model
/// has no influence.
///
/// A probability p above 1/2 is replaced by 1 - p: the error counts as always present, and the column means its
/// absence. The constant part is in certain_checks and certain_observables. With p = 1 no column is left. The same is
/// done for errors without detectors. Example: error(0.9) D0 D1 L0 becomes the column {D0, D1}, {L0} with probability
/// 0.1; certain_checks is {D0, D1} and certain_observables is {L0}.
struct tanner_graph {
  std::uint64_t num_detectors = 0;
  std::uint64_t num_observables = 0;
  std::uint32_t num_checks = 0;
  std::vector<std::uint32_t> check_of; ///< for each detector: its check, or kNoCheck
  std::vector<double> probability;     ///< for each column: above 0, at most 1/2
  std::vector<std::uint32_t> certain_checks;
  std::vector<std::uint64_t> certain_observables;
  /// For each column an error of the model, the likeliest of those that it stands for, as the number of its instruction
  /// (dem_component::mechanism).
  std::vector<std::uint64_t> error_of;
  /// The errors that count as present, each with its column, or kNoColumn.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> certain_errors;
  double certain_weight = 0; ///< sum of log((1 - p) / p) over them, without those of p = 1
  std::uint64_t num_errors = 0;
  error_groups groups;

  std::uint32_t num_columns() const noexcept { return static_cast<std::uint32_t>(probability.size()); }
  /// Ascending.
  std::span<const std::uint32_t> checks_of(std::uint32_t column) const noexcept {
    return std::span(checks).subspan(first_check[column], first_check[column + 1] - first_check[column]);
  }
  std::span<const std::uint64_t> observables_of(std::uint32_t column) const noexcept {
    return std::span(observables)
        .subspan(first_observable[column], first_observable[column + 1] - first_observable[column]);
  }

  /// Flips the observables of these columns and of the certain errors. Observable k: bit k % 8 of byte k / 8.
  void flip_observables(std::span<const std::uint32_t> columns, std::span<std::uint8_t> packed) const noexcept {
    flip_bits(certain_observables, packed);
    for (const std::uint32_t column : columns)
      flip_bits(observables_of(column), packed);
  }

  /// Writes the errors that these columns and the certain errors mean, ascending: their sum mod 2 has the detectors and
  /// observables. Returns their number; if it is above errors.size(), nothing is written that counts.
  std::size_t list_errors(std::span<const std::uint32_t> columns, std::span<std::uint64_t> errors) const noexcept;

  std::vector<std::size_t> first_check{0};      ///< num_columns() + 1 indices into checks
  std::vector<std::uint32_t> checks;            ///< of all columns
  std::vector<std::size_t> first_observable{0}; ///< num_columns() + 1 indices into observables
  std::vector<std::uint64_t> observables;

  /// Fails above kMaxChecks.
  static expected<tanner_graph> from_dem(const detector_error_model &model);
  static expected<tanner_graph> from_text(std::string_view dem_text);
  static expected<tanner_graph> from_model(const decoder_model &model);
};

} // namespace cudaq::qec::realtime
