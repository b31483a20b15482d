// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoders/propagation/tanner_graph.h"
#include "lib/qec/decoders/replaced_errors.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace cudaq::qec::realtime {

/// Replaces probabilities in a Tanner graph for one shot. The graph is then, bit by bit, that of the model with these
/// probabilities: a column stands for all equal errors, so its probability is made again from all of theirs, in the
/// order of the model.
class shot_columns {
public:
  /// `graph` must outlive the instance, and only this instance changes it. Probabilities count as at least `smallest`,
  /// and as at most 1 - smallest.
  shot_columns(tanner_graph &graph, double smallest);

  /// The solver has a copy of the graph's columns and loads those that change. bad_probability, internal_error (no
  /// memory): fault() has the reason, and nothing is changed.
  template <class Solver>
  [[nodiscard]] decode_status replace(shot_probabilities list, Solver &solver) noexcept {
    const decode_status status = replace(list);
    load_changed(solver);
    return status;
  }
  /// The graph, and what the solver has of it, are those of the model again.
  template <class Solver>
  void restore(Solver &solver) noexcept {
    restore();
    load_changed(solver);
  }
  [[nodiscard]] const char *fault() const noexcept { return check_.fault(); }
  /// At the begin of a decode: what was wrong with a list of an earlier one is over.
  void clear_fault() noexcept { check_.set_fault(""); }
  [[nodiscard]] double smallest() const noexcept { return smallest_; }
  [[nodiscard]] const tanner_graph &graph() const noexcept { return graph_; }

private:
  /// What the graph has of the errors that count as present.
  struct certain {
    std::vector<std::uint32_t> checks;
    std::vector<std::uint64_t> observables;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> errors;
    double weight = 0;
  };
  struct old_column {
    std::uint64_t error;
    double probability;
  };

  [[nodiscard]] decode_status replace(shot_probabilities list) noexcept;
  void restore() noexcept;
  template <class Solver>
  void load_changed(Solver &solver) const noexcept {
    for (const std::uint32_t column : changed_)
      solver.reload(column);
  }
  [[nodiscard]] const char *why_not(std::uint64_t error) const noexcept;
  void change(std::uint32_t group);
  void count_as_present(std::uint32_t group, std::uint64_t error, double probability);

  tanner_graph &graph_;
  const double smallest_;
  replaced_errors check_;
  std::vector<std::uint32_t> first_member_; ///< for each group, and one more
  std::vector<std::uint32_t> members_;      ///< the errors of each group, ascending
  std::vector<double> probability_;         ///< of each group: that an odd number of its errors happens
  std::vector<bool> is_changed_;            ///< for each group
  std::vector<std::uint32_t> groups_;       ///< that are changed
  std::vector<double> old_of_group_;        ///< for each of groups_
  std::vector<double> old_of_error_;        ///< for each error of list_
  std::vector<std::uint64_t> list_;
  std::vector<std::uint32_t> changed_;    ///< the columns that the last replace() changed
  std::vector<old_column> old_of_column_; ///< for each of changed_
  certain certain_;                       ///< that of the model, while is_certain_changed_
  bool is_certain_changed_ = false;
};

} // namespace cudaq::qec::realtime
