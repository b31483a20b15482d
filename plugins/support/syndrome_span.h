// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugins/support/error_columns.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace cudaq::qec::plugins {

/// Which syndromes any set of the model's errors can cause. First detectors are joined: a column of one detector joins
/// it to "free", a column of two joins them; this repeats with what is left of the longer columns. Only columns that
/// stay longer need elimination. contains() allocates nothing.
class syndrome_span {
public:
  explicit syndrome_span(const error_columns &model) : parent_(model.num_detectors + 1), scratch_(parent_.size()) {
    std::iota(parent_.begin(), parent_.end(), std::uint32_t{0});
    std::vector<std::vector<std::uint32_t>> left;
    for (const error_column &column : model.columns)
      left.push_back(column.detectors);
    for (bool joined = true; joined;) {
      joined = false;
      for (auto &column : left) {
        column = roots(column);
        if (column.empty() || column.size() > 2)
          continue;
        const std::uint32_t other = column.size() == 2 ? column[1] : free_node();
        parent_[column[0]] = other; // ascending: free, the last node, is never column[0]
        ++rank_;
        joined = true;
      }
      std::erase_if(left, [](const auto &column) { return column.empty(); });
    }
    for (std::uint32_t node = 0; node < parent_.size(); ++node)
      parent_[node] = root(node);
    eliminate(left);
  }

  std::size_t rank() const { return rank_; }

  /// syndrome: one byte per detector, 0 or 1.
  bool contains(const std::vector<std::uint8_t> &syndrome) {
    std::fill(scratch_.begin(), scratch_.end(), std::uint8_t{0});
    for (std::size_t d = 0; d < syndrome.size(); ++d)
      scratch_[parent_[d]] ^= syndrome[d];
    scratch_[free_node()] = 0;
    std::fill(row_.begin(), row_.end(), 0);
    for (std::size_t node = 0; node < scratch_.size(); ++node) {
      if (scratch_[node] == 0)
        continue;
      if (position_.empty() || position_[node] == kNone)
        return false;
      row_[position_[node] / 64] |= std::uint64_t{1} << position_[node] % 64;
    }
    return reduce(row_) == kNone;
  }

private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  std::uint32_t free_node() const { return static_cast<std::uint32_t>(parent_.size() - 1); }

  std::uint32_t root(std::uint32_t node) {
    while (parent_[node] != node)
      node = parent_[node] = parent_[parent_[node]];
    return node;
  }

  std::vector<std::uint32_t> roots(std::vector<std::uint32_t> column) {
    for (std::uint32_t &node : column)
      node = root(node);
    std::erase(column, free_node());
    return odd_ones(std::move(column));
  }

  void eliminate(const std::vector<std::vector<std::uint32_t>> &left) {
    if (left.empty())
      return;
    position_.assign(parent_.size(), kNone);
    std::uint32_t positions = 0;
    for (const auto &column : left)
      for (const std::uint32_t node : column)
        if (position_[node] == kNone)
          position_[node] = positions++;
    row_.resize((positions + 63) / 64);
    basis_.resize(positions);
    std::uint32_t found = 0;
    for (const auto &column : left) {
      if (found == positions)
        break;
      std::vector<std::uint64_t> row(row_.size());
      for (const std::uint32_t node : column)
        row[position_[node] / 64] |= std::uint64_t{1} << position_[node] % 64;
      if (const std::uint32_t pivot = reduce(row); pivot != kNone) {
        basis_[pivot] = std::move(row);
        ++found;
      }
    }
    rank_ += found;
  }

  /// Subtracts rows of the basis; returns the first position that is left, or kNone.
  std::uint32_t reduce(std::vector<std::uint64_t> &row) const {
    for (std::size_t word = 0; word < row.size(); ++word)
      while (row[word] != 0) {
        const std::size_t pivot = word * 64 + static_cast<std::size_t>(std::countr_zero(row[word]));
        if (basis_[pivot].empty())
          return static_cast<std::uint32_t>(pivot);
        for (std::size_t i = word; i < row.size(); ++i)
          row[i] ^= basis_[pivot][i];
      }
    return kNone;
  }

  std::vector<std::uint32_t> parent_;             ///< the last node is "free"
  std::vector<std::uint32_t> position_;           ///< of a node in rows, or kNone; empty without rows
  std::vector<std::vector<std::uint64_t>> basis_; ///< the row whose first position this is, or empty
  std::vector<std::uint8_t> scratch_;
  std::vector<std::uint64_t> row_;
  std::size_t rank_ = 0;
};

} // namespace cudaq::qec::plugins
