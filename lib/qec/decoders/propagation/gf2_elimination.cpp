// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/propagation/gf2_elimination.h"

#include <algorithm>
#include <bit>

namespace cudaq::qec::realtime {
namespace {

bool bit_of(std::span<const std::uint64_t> words, std::size_t bit) noexcept {
  return (words[bit / 64] >> (bit % 64) & 1U) != 0;
}

void flip(std::span<std::uint64_t> words, std::size_t bit) noexcept {
  words[bit / 64] ^= std::uint64_t{1} << (bit % 64);
}

void add_to(std::span<std::uint64_t> sum, std::span<const std::uint64_t> words) noexcept {
  for (std::size_t k = 0; k < sum.size(); ++k)
    sum[k] ^= words[k];
}

} // namespace

gf2_elimination::gf2_elimination(std::uint32_t rows) : rows_(rows), words_((std::size_t{rows} + 63) / 64) {
  transform_.resize(rows * words_);
  for (std::uint32_t row = 0; row < rows; ++row)
    flip(transform_of(row), row);
  right_side_.resize(words_);
  free_.resize(words_);
  scratch_.resize(words_);
  pivot_rows_.reserve(rows);
  column_at_.resize(rows);
}

void gf2_elimination::start(std::span<const std::uint64_t> right_side) noexcept {
  for (const std::uint32_t row : pivot_rows_) {
    const auto transform = transform_of(row);
    std::fill(transform.begin(), transform.end(), std::uint64_t{0});
    flip(transform, row);
  }
  pivot_rows_.clear();
  std::copy(right_side.begin(), right_side.end(), right_side_.begin());
  std::fill(free_.begin(), free_.end(), ~std::uint64_t{0});
  if (rows_ % 64 != 0)
    free_.back() = (std::uint64_t{1} << (rows_ % 64)) - 1;
}

void gf2_elimination::reduce(std::span<const std::uint32_t> rows, std::span<std::uint64_t> reduced) const noexcept {
  std::fill(reduced.begin(), reduced.end(), std::uint64_t{0});
  for (const std::uint32_t row : rows) {
    if (bit_of(free_, row))
      flip(reduced, row);
    else
      add_to(reduced, std::span(transform_).subspan(row * words_, words_));
  }
}

bool gf2_elimination::add(std::uint32_t column, std::span<const std::uint32_t> rows) noexcept {
  const std::span<std::uint64_t> reduced(scratch_);
  reduce(rows, reduced);
  std::size_t word = 0;
  while (word < words_ && (reduced[word] & free_[word]) == 0)
    ++word;
  if (word == words_)
    return false;
  const auto row =
      static_cast<std::uint32_t>(word * 64 + static_cast<std::size_t>(std::countr_zero(reduced[word] & free_[word])));
  flip(free_, row);
  pivot_rows_.push_back(row);
  column_at_[row] = column;
  // The pivot row is added to the other rows of the column. In a column of T that changes something only if it has the
  // pivot row.
  flip(reduced, row);
  for (const std::uint32_t pivot : pivot_rows_)
    if (const auto transform = transform_of(pivot); bit_of(transform, row))
      add_to(transform, reduced);
  if (bit_of(right_side_, row))
    add_to(right_side_, reduced);
  return true;
}

bool gf2_elimination::solved() const noexcept {
  std::uint64_t outside = 0;
  for (std::size_t k = 0; k < words_; ++k)
    outside |= right_side_[k] & free_[k];
  return outside == 0;
}

std::vector<std::uint64_t> gf2_elimination::parity_rows() const {
  std::vector<std::uint64_t> result;
  for (std::uint32_t row = 0; row < rows_; ++row) {
    if (!bit_of(free_, row))
      continue;
    result.resize(result.size() + words_);
    const auto parity = std::span(result).last(words_);
    flip(parity, row);
    for (const std::uint32_t pivot : pivot_rows_)
      if (bit_of(std::span(transform_).subspan(pivot * words_, words_), row))
        flip(parity, pivot);
  }
  return result;
}

} // namespace cudaq::qec::realtime
