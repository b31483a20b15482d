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
  /// Makes the decoder of a model's text, with an empty identity()->rates and tap.
  using unit_maker = std::function<expected<std::unique_ptr<decoding_unit>>(const std::string &text)>;

  /// `text`: of the model of the configuration, which is served; `ties`: groups of its errors, in place of
  /// learn_settings::ties. A reason says why its rates cannot be learned.
  static expected<std::unique_ptr<decoder_learner>> make(const std::string &text, const learn_settings &settings,
                                                         unit_maker make_unit, const tied_errors &ties = {});

  /// A shot, and the observables that the served decoder answered. True: a round has ended, and verdict() is new.
  bool add(std::span<const std::uint8_t> events, std::span<const std::uint8_t> observables, bool answered);
  /// Of the last round.
  [[nodiscard]] const learn_verdict &verdict() const noexcept { return verdict_; }

  /// The decoder of a candidate that is better, once. take_served() tells that it is in use.
  [[nodiscard]] std::unique_ptr<decoding_unit> take_candidate() noexcept { return std::move(candidate_unit_); }
  [[nodiscard]] const std::string &candidate_text() const noexcept { return candidate_text_; }
  void serve_candidate() { served_ = *candidate_; }
  /// Begins a round anew. What was counted is forgotten; the served model stays.
  void restart();

  /// Bytes of memory of the counts, about.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return 3 * sets_->size() * sizeof(double); }

private:
  decoder_learner(const std::string &text, const learn_settings &settings, unit_maker make_unit,
                  detector_error_model model, learning_options options, std::shared_ptr<const parity_sets> sets);
  bool end_collection();
  bool end_round();
  bool refuse(std::vector<std::string> reasons);

  const std::string text_;
  const learn_settings settings_;
  const unit_maker make_unit_;
  const detector_error_model base_;
  const learning_options options_;
  const std::shared_ptr<const parity_sets> sets_;
  detector_error_model served_;
  event_counts counts_, held_;
  std::uint64_t in_phase_ = 0; ///< shots
  learn_verdict verdict_;
  // Of the phase held out.
  std::optional<detector_error_model> candidate_;
  std::optional<model_score> score_;
  std::string candidate_text_;
  std::unique_ptr<decoding_unit> candidate_unit_;
  std::vector<std::uint8_t> shadow_; ///< an answer
};

} // namespace cudaq::qec::realtime
