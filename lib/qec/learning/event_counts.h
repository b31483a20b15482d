// SPDX-License-Identifier: Apache-2.0
// Counts of detection events, from which the rates of a model's errors are learned without labels.
//
// For independent errors with probabilities p, the parity of a set A of detectors (1: an odd number of them fired) has
//
//   -1/2 ln(1 - 2 P(parity of A is 1)) = sum of -1/2 ln(1 - 2p) over the errors that flip an odd number of A
//
// which is linear in the errors' exponents -1/2 ln(1 - 2p). For two detectors this is the known
// p_ij = 1/2 - sqrt(1/4 - c/(1 - 2x_i - 2x_j + 4x_ij)), since x_ij = (odd_i + odd_j - odd_ij) / 2.
#pragma once

#include "lib/qec/decoding/dem.h"

#include "cudaq/qec/decoding/decode_status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

/// The sets of detectors whose parities are counted: each detector, each pair of detectors that an error joins, and of
/// an error with 3 to kWholeSubsets detectors each subset. Of a larger error only its pairs. A list does not change
/// after it is made, so threads and counts may share it.
class parity_sets {
public:
  static constexpr std::size_t kWholeSubsets = 6;
  static constexpr std::size_t kMaxDetectors = 64;              ///< of an error
  static constexpr std::size_t kMaxSets = std::size_t{1} << 22; ///< counts take 16 bytes for each
  /// Of the equations of the rates, which have one for each error and each set that shares a detector with it: 2 GiB.
  static constexpr double kMaxTerms = std::size_t{1} << 28;
  /// The sum of the squares of the errors' terms: minutes for each pass over the covariances.
  static constexpr double kMaxProducts = std::size_t{1} << 38;
  static constexpr std::size_t kNone = SIZE_MAX;
  static constexpr std::size_t kBytes = 40; ///< of a set, at most

  /// At least the sets of this model, for an estimate of memory: of errors that share sets each one counts.
  [[nodiscard]] static std::uint64_t max_sets(const detector_error_model &model) noexcept;
  /// The components of a decomposed error happen together: their detectors are one set. Fails for a model without
  /// detectors and for one beyond these limits. Its sets take about 1 GiB at most while they are found.
  [[nodiscard]] static expected<std::shared_ptr<const parity_sets>> of(const detector_error_model &model);

  /// Set d < num_detectors() is detector d alone; larger sets follow by their sizes.
  [[nodiscard]] std::size_t size() const noexcept { return first_.size() - 1; }
  [[nodiscard]] std::size_t num_detectors() const noexcept { return num_detectors_; }
  bool operator==(const parity_sets &) const = default;
  /// Ascending.
  [[nodiscard]] std::span<const std::uint32_t> operator[](std::size_t k) const noexcept {
    return std::span(detectors_).subspan(first_[k], first_[k + 1] - first_[k]);
  }
  /// The number of the set with these detectors, ascending; kNone: it is not counted.
  [[nodiscard]] std::size_t find(std::span<const std::uint32_t> detectors) const noexcept;
  /// Pairs are the sets [num_detectors(), end_of_pairs()).
  [[nodiscard]] std::size_t end_of_pairs() const noexcept { return end_of_pairs_; }

private:
  std::size_t num_detectors_ = 0, end_of_pairs_ = 0;
  std::vector<std::size_t> first_{0};
  std::vector<std::uint32_t> detectors_;
  friend class event_counts;
  /// A set with more than one detector is another one and its own last detector.
  std::vector<std::uint32_t> without_last_, last_;
};

/// How often each parity of a list of sets was 1. One thread at a time: the thread that adds shots copies or merges the
/// counts for other threads. Nothing is allocated after the constructor, except by a copy. Memory: 16 bytes a set, 64
/// shots, and 32 KiB.
///
/// Shots are collected in blocks of 64 and counted when a block is full: most calls of add() only copy a shot, each
/// 64th one counts. What the functions below return includes full blocks, and after flush() all shots.
class event_counts {
public:
  static constexpr std::size_t kBytesOfSet = 16;
  /// Memory of counts without sets, at most.
  [[nodiscard]] static constexpr std::uint64_t bytes_for(std::uint64_t num_detectors) noexcept {
    return (num_detectors / 64 + 1) * kBlock * sizeof(std::uint64_t) + kPassages * sizeof(std::uint64_t);
  }

  explicit event_counts(std::shared_ptr<const parity_sets> sets);

  /// Adds a shot, detector k in bit k % 8 of byte k / 8. Not ok: the bytes are too few, or a bit after the last
  /// detector is set; then nothing is counted.
  [[nodiscard]] decode_status add(std::span<const std::uint8_t> shot) noexcept;
  void flush() noexcept;
  /// Weights all shots until now by one half. A caller that does it each n shots has a window of about 2n shots. It
  /// flushes.
  void halve() noexcept;
  /// Adds the counts of `other`, which must be flushed. Fails if its sets are not those of this object.
  expected<> merge(const event_counts &other);
  void clear() noexcept;

  [[nodiscard]] const std::shared_ptr<const parity_sets> &sets() const noexcept { return sets_; }
  /// The sum of the weights of the shots: their number, unless halve() was called.
  [[nodiscard]] double shots() const noexcept { return shots_; }
  /// The number of shots with equal weights that would have the same statistical error.
  [[nodiscard]] double effective_shots() const noexcept;
  /// The weight of the shots in which the parity of set k was 1.
  [[nodiscard]] double odd(std::size_t k) const noexcept { return odd_[k]; }
  /// Events of a shot: mean, and variance between shots. 0 without shots.
  [[nodiscard]] double mean_events() const noexcept;
  [[nodiscard]] double variance_of_events() const noexcept;
  /// Weight of the shots in passages that repeat an earlier passage bit by bit. A passage ends at a shot that a hash
  /// names, so that it is found at any offset; only passages with at least 64 events count, and the table of them is
  /// bounded: not each repetition is found.
  [[nodiscard]] double repeated_shots() const noexcept { return repeated_; }

private:
  static constexpr std::size_t kBlock = 64;
  static constexpr std::size_t kPassages = 4096;

  void note_passage(std::uint64_t hash_of_shot, std::uint64_t events) noexcept;
  void count_block() noexcept;

  std::shared_ptr<const parity_sets> sets_;
  std::size_t words_; ///< of a shot
  std::size_t pending_ = 0;
  std::vector<std::uint64_t> block_;    ///< word w of shot s is [64 w + s]
  std::vector<std::uint64_t> parities_; ///< of a block: of each set, shot s in bit s
  std::vector<double> odd_;
  double shots_ = 0, squared_weights_ = 0, events_ = 0, squared_events_ = 0, repeated_ = 0;
  std::uint64_t block_events_ = 0, block_squared_events_ = 0;
  std::uint64_t passage_hash_ = 0, passage_events_ = 0, passage_shots_ = 0;
  std::vector<std::uint64_t> passages_;
};

} // namespace cudaq::qec::realtime
