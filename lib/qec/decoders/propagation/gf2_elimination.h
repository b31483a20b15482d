// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

/// Gauss-Jordan elimination mod 2, one column at a time, in the order in which the caller adds them.
///
/// The instance holds the product T of all row operations so far: T * column is the reduced form of any column of the
/// original matrix. A sparse column is reduced by adding a few columns of T, so a dependent column costs next to
/// nothing, and no other column is touched. Example with the columns a = {0, 1}, b = {0}, c = {1} and the right side
/// s = {1}; e_i is row i alone:
///
///   add a: T = I, T * a = {0, 1}: row 0 becomes its pivot; row 0 is added to row 1
///   add b: T * b = {0, 1}, row 1 is free: its pivot; row 1 is added to row 0. Now T * a = e_0, T * b = e_1
///   T * s = {0, 1}: s = a + b. solved() is true, c is not needed
class gf2_elimination {
public:
  explicit gf2_elimination(std::uint32_t rows);

  std::size_t words() const noexcept { return words_; }

  /// Begins again, without columns. `right_side`: words() words, bit r % 64 of word r / 64 is row r.
  void start(std::span<const std::uint64_t> right_side) noexcept;

  /// Adds a column, given as its rows. Returns false if it depends on the columns added before; it is then not kept.
  bool add(std::uint32_t column, std::span<const std::uint32_t> rows) noexcept;

  /// The reduced form of a column.
  void reduce(std::span<const std::uint32_t> rows, std::span<std::uint64_t> reduced) const noexcept;

  /// Whether the right side is a sum of the columns kept: those at the pivot rows that are set in reduced_right_side().
  bool solved() const noexcept;
  std::span<const std::uint64_t> reduced_right_side() const noexcept { return right_side_; }
  std::uint32_t rank() const noexcept { return static_cast<std::uint32_t>(pivot_rows_.size()); }
  std::uint32_t column_at(std::uint32_t pivot_row) const noexcept { return column_at_[pivot_row]; }

  /// Rows of T without a pivot, each in words() words: if no further column can be kept, a right side has a solution
  /// if and only if it has an even number of bits in common with each of them.
  std::vector<std::uint64_t> parity_rows() const;

private:
  std::span<std::uint64_t> transform_of(std::uint32_t row) noexcept {
    return std::span(transform_).subspan(row * words_, words_);
  }

  std::uint32_t rows_;
  std::size_t words_;
  std::vector<std::uint64_t> transform_; ///< T by columns. A column whose row is not a pivot is as in the unit matrix
  std::vector<std::uint64_t> right_side_;
  std::vector<std::uint64_t> free_; ///< rows without a pivot
  std::vector<std::uint64_t> scratch_;
  std::vector<std::uint32_t> pivot_rows_; ///< in the order of the columns kept
  std::vector<std::uint32_t> column_at_;
};

} // namespace cudaq::qec::realtime
