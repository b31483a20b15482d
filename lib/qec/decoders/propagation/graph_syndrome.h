// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoders/propagation/tanner_graph.h"

#include <cstdint>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

/// The syndrome of a shot on the checks of a graph, without that of the certain errors: what columns must explain.
class graph_syndrome {
public:
  /// `graph` must outlive the instance. Does one elimination.
  explicit graph_syndrome(const tanner_graph &graph);

  /// `events`: in range and without duplicates. False: no set of columns explains them.
  bool set_events(std::span<const std::uint64_t> events) noexcept;

  /// 0 or 1 for each check.
  [[nodiscard]] std::span<const std::uint8_t> bytes() const noexcept { return bytes_; }
  /// Bit c % 64 of word c / 64 is check c.
  [[nodiscard]] std::span<const std::uint64_t> words() const noexcept { return words_; }
  /// The checks that are set, ascending.
  [[nodiscard]] std::span<const std::uint32_t> checks() const noexcept { return checks_; }
  /// Columns that do not depend on each other.
  [[nodiscard]] std::uint32_t rank() const noexcept { return rank_; }

private:
  const tanner_graph &graph_;
  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint32_t> checks_;      ///< room for all
  std::vector<std::uint64_t> parity_rows_; ///< each has an even number of bits in common with what can be explained
  std::uint32_t rank_ = 0;
};

} // namespace cudaq::qec::realtime
