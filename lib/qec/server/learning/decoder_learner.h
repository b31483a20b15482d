// SPDX-License-Identifier: Apache-2.0
// The rates of one served decoder, learned from its shots, without threads. Two phases take turns:
//
//   phase      with so many shots  what happens at its end
//   collect    shots               rates are learned from the counts. Data that must not change a model end the round:
//                                  refused. Else a candidate is made: the model with these rates, and its decoder
//   held out   held_out            shots that the candidate was not learned from: candidate and served model are scored
//                                  by them. Better by more than three sigma: the candidate is offered. Refused, too, if
//                                  these shots are themselves data that must not change a model
//
// The first phase always learns against the model of the configuration: errors of successive rounds do not add up.
#pragma once

#include "lib/qec/learning/learned_rates.h"
#include "lib/qec/learning/model_score.h"
#include "lib/qec/server/server_config.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cudaq::qec::realtime {

/// The end of a round.
struct learn_verdict {
  enum class kind : std::uint8_t { refused, not_better, better };
  kind what = kind::refused;
  std::vector<std::string> reasons; ///< of `refused`, at most kMaxReasons; each names detector and figure
  std::size_t more_reasons = 0;     ///< those that are left out
  score_difference score;           ///< but of `refused`
  std::uint64_t shadow_shots = 0, shadow_differ = 0; ///< decoded by both decoders; of these, with other answers
  static constexpr std::size_t kMaxReasons = 20;
};

/// One thread at a time.
class decoder_learner {
public:
  using shared_model = std::shared_ptr<const decoder_model>;
  /// Makes the decoder of a model, with an empty identity()->rates and tap.
  using unit_maker = std::function<expected<std::unique_ptr<decoding_unit>>(const shared_model &model)>;

  /// `source`: of the model of the configuration, which is served. Throws std::bad_alloc.
  decoder_learner(learned_source source, const learn_settings &settings, unit_maker make_unit);

  /// A shot, and the observables that the served decoder answered. True: a round has ended, and verdict() is new.
  bool add(std::span<const std::uint8_t> events, std::span<const std::uint8_t> observables, bool answered);
  /// Of the last round.
  [[nodiscard]] const learn_verdict &verdict() const noexcept { return verdict_; }

  /// The decoder of a candidate that is better, once. take_served() tells that it is in use.
  [[nodiscard]] std::unique_ptr<decoding_unit> take_candidate() noexcept { return std::move(candidate_unit_); }
  [[nodiscard]] const shared_model &candidate() const noexcept { return candidate_; }
  void serve_candidate() { served_ = candidate_; }
  /// Begins a round anew. What was counted is forgotten; the served model stays.
  void restart();

  /// Memory of the sets of such a model and of all counts of them, and of a candidate's model: at most. The equations
  /// of a round's end come and go, and are not in it.
  [[nodiscard]] static std::uint64_t bytes_for(const detector_error_model &model) noexcept;

private:
  bool end_collection();
  bool end_round();
  bool refuse(std::vector<std::string> reasons);

  const shared_model base_;
  const std::shared_ptr<const parity_sets> sets_;
  const learning_options options_; ///< groups of errors that are learned together
  const learn_settings settings_;
  const unit_maker make_unit_;
  shared_model served_;
  event_counts counts_, held_;
  std::uint64_t in_phase_ = 0; ///< shots
  learn_verdict verdict_;
  // Of the phase held out.
  shared_model candidate_;
  std::optional<model_score> score_;
  std::unique_ptr<decoding_unit> candidate_unit_;
  std::vector<std::uint8_t> shadow_; ///< an answer
};

} // namespace cudaq::qec::realtime
