// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/learning/learned_rates.h"
#include "lib/qec/learning/model_score.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cudaq::qec::realtime {

struct offline_result {
  learned_rates rates;
  std::uint64_t learned_from = 0, held_out = 0; ///< shots
  std::optional<score_difference> score; ///< of the learned model over the one that was there; with held-out shots
};

/// Learns from shots that are there: a file. Of the shots a share is held out for the score, in blocks that lie evenly
/// among the others. One thread at a time.
class offline_learning {
public:
  static constexpr std::uint64_t kBlock = 256;                          ///< shots
  static constexpr std::size_t kMaxHeldOutBytes = std::size_t{1} << 28; ///< then all further shots are learned from

  /// `held_out`: from 0 to below 1. Fails as learnable_sets() does.
  [[nodiscard]] static expected<offline_learning> of(detector_error_model model, learning_options options,
                                                     double held_out);

  /// As event_counts::add().
  [[nodiscard]] decode_status add(std::span<const std::uint8_t> shot);
  /// A reason is that of learn_rates(), or that the score is worse by more than three sigma, among the refusals.
  [[nodiscard]] expected<offline_result> finish();

private:
  offline_learning(detector_error_model model, learning_options options, double held_out,
                   std::shared_ptr<const parity_sets> sets)
      : model_(std::move(model)), options_(std::move(options)), held_out_(held_out), counts_(std::move(sets)) {}

  detector_error_model model_;
  learning_options options_;
  double held_out_;
  event_counts counts_;
  std::vector<std::uint8_t> kept_;
  std::uint64_t shots_ = 0, num_kept_ = 0;
};

} // namespace cudaq::qec::realtime
