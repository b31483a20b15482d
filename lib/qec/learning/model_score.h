// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/learning/event_counts.h"

#include <cstdint>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

struct score_difference {
  double per_shot = 0; ///< mean of the difference, in nats a shot; > 0: the candidate is better
  double sigma = 0;    ///< of `per_shot`, by the block bootstrap
  double shots = 0;
  std::size_t blocks = 0;
  /// per_shot / sigma; 0 with fewer than kFewestBlocks blocks, or a sigma of 0.
  double better_by_sigmas = 0;
};

/// Compares two models of the same detectors on shots that neither was learned from, by their composite log-likelihood:
/// the sum of the log-likelihoods of each detector, and of each pair of detectors that an error of the first model
/// joins. It needs no labels. One thread at a time.
class model_score {
public:
  static constexpr std::size_t kFewestBlocks = 20;
  static constexpr std::size_t kMaxBlocks = 1024; ///< then two neighbours become one, and blocks are twice as long

  /// `sets`: of the served model. `block`: shots; a block is longer than what correlates successive shots.
  model_score(std::shared_ptr<const parity_sets> sets, const detector_error_model &served,
              const detector_error_model &candidate, std::uint64_t block = 1024);

  [[nodiscard]] decode_status add(std::span<const std::uint8_t> shot) noexcept;
  /// Of the full blocks. The bootstrap draws with a generator of fixed seed: equal shots give an equal result.
  [[nodiscard]] score_difference difference() const;

private:
  void end_block() noexcept;

  event_counts counts_;
  std::vector<double> of_odd_; ///< for each set, what a shot with parity 1 adds to the difference
  double of_shot_ = 0;         ///< and what each shot adds
  std::uint64_t block_, in_block_ = 0;
  std::vector<double> blocks_;
};

} // namespace cudaq::qec::realtime
