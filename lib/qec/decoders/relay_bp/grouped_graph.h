// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoders/propagation/tanner_graph.h"

#include <cstdint>
#include <vector>

namespace cudaq::qec::realtime {

/// Checks and columns of a graph that are handled at the same time, one in each lane of a vector.
inline constexpr std::uint32_t kLanes = 8;

/// How a graph is grouped.
struct grouping {
  std::uint32_t lanes = kLanes;
  std::uint32_t stride = kLanes; ///< cells from one row of a group of checks to the next: at least `lanes`
  /// Columns are sorted by their number of messages only within blocks of this size: neighbours in the model share
  /// checks, so a sweep works on messages that are in the first cache.
  std::uint32_t block = 512;
  /// Neighbouring lanes that share the messages of a check, each the same number or one more: a power of 2 that divides
  /// `lanes`.
  std::uint32_t check_lanes = 1;
};

/// A Tanner graph, arranged for vectors: checks with about the same number of messages form groups of `lanes`, and so
/// do columns with exactly the same number. The messages are stored by group of checks: row r of a group holds the r-th
/// message of each of its checks. A lane whose check has fewer rows has unused cells.
///
/// Lane k of column group g is entry g * lanes + k of an array with a value for each column; the same for checks. The
/// used lanes of a group of columns come first. Unused ones have cells of their own after the cells of all checks, so
/// that a sweep need not know them.
struct grouped_graph {
  struct check_group {
    std::uint32_t first_cell;
    std::uint32_t full_rows; ///< rows in which all lanes have a message
    std::uint32_t rows;
  };
  struct column_group {
    std::uint32_t first_place; ///< into places: row r of lane k is first_place + r * lanes + k
    std::uint32_t rows;
  };

  explicit grouped_graph(const tanner_graph &graph, const grouping &wanted = {});

  std::vector<check_group> check_groups;
  std::vector<std::uint32_t> rows_of_check; ///< for each lane; 0: unused
  std::vector<std::uint32_t> lane_of_check; ///< for each check, its first one
  std::vector<column_group> column_groups;
  std::vector<std::uint32_t> column_at; ///< for each lane, kUnused: none
  std::vector<std::uint32_t> places;    ///< cells of the messages of each lane, checks in ascending order
  std::uint32_t num_cells = 0;
  std::uint32_t max_rows = 0; ///< of a column group

  static constexpr std::uint32_t kUnused = UINT32_MAX;
};

} // namespace cudaq::qec::realtime
