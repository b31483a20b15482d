// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/learning/decoder_learner.h"

#include <algorithm>
#include <utility>

namespace cudaq::qec::realtime {

decoder_learner::decoder_learner(learned_source source, const learn_settings &settings, unit_maker make_unit)
    : base_(std::move(source.model)), sets_(std::move(source.sets)), options_(std::move(source.options)),
      settings_(settings), make_unit_(std::move(make_unit)), served_(base_), counts_(sets_), held_(sets_) {}

std::uint64_t decoder_learner::bytes_for(const detector_error_model &model) noexcept {
  constexpr std::uint64_t kCounts = 3; // those that are learned from, held-out ones, and those of the score
  constexpr std::uint64_t kBytesOfSet = parity_sets::kBytes + kCounts * event_counts::kBytesOfSet + sizeof(double);
  return parity_sets::max_sets(model) * kBytesOfSet + kCounts * event_counts::bytes_for(model.num_detectors);
}

bool decoder_learner::add(std::span<const std::uint8_t> events, std::span<const std::uint8_t> observables,
                          bool answered) {
  ++in_phase_;
  if (!score_) {
    (void)counts_.add(events); // the decoder has taken these bits
    return in_phase_ >= settings_.shots && end_collection();
  }
  (void)held_.add(events);
  (void)score_->add(events);
  if (settings_.shadow != 0 && in_phase_ % settings_.shadow == 0 && answered) {
    shadow_.assign(observables.size(), 0);
    ++verdict_.shadow_shots;
    const decode_status status = candidate_unit_->decode_events(events, shadow_);
    if (status != decode_status::ok || !std::ranges::equal(shadow_, observables))
      ++verdict_.shadow_differ;
  }
  return in_phase_ >= settings_.held_out && end_round();
}

/// Counts of refused data are forgotten: what is over must not hold up later rounds.
bool decoder_learner::refuse(std::vector<std::string> reasons) {
  verdict_.what = learn_verdict::kind::refused;
  verdict_.more_reasons = reasons.size() - std::min(reasons.size(), learn_verdict::kMaxReasons);
  reasons.resize(reasons.size() - verdict_.more_reasons);
  verdict_.reasons = std::move(reasons);
  candidate_unit_.reset();
  score_.reset();
  counts_.clear();
  in_phase_ = 0;
  return true;
}

bool decoder_learner::end_collection() {
  verdict_ = {};
  in_phase_ = 0;
  counts_.flush();
  const auto learned = learn_rates(**base_->errors(), counts_, options_);
  if (learned.failed())
    return refuse({learned.text()});
  if (!learned->refusals.empty())
    return refuse(learned->refusals);
  candidate_ = decoder_model::of_text(text_with(base_->text(), *learned));
  auto unit = make_unit_(candidate_);
  if (unit.failed())
    return refuse({"the decoder of the learned model: " + unit.text()});
  candidate_unit_ = std::move(*unit);
  held_.clear();
  score_.emplace(sets_, **served_->errors(), **candidate_->errors());
  return false;
}

bool decoder_learner::end_round() {
  in_phase_ = 0;
  held_.flush();
  verdict_.score = score_->difference();
  const auto of_held = learn_rates(**base_->errors(), held_, options_);
  if (of_held.failed() || !of_held->refusals.empty()) {
    auto reasons = of_held.failed() ? std::vector{of_held.text()} : of_held->refusals;
    for (std::string &reason : reasons)
      reason = "held-out shots: " + reason;
    return refuse(std::move(reasons));
  }
  const bool is_better = verdict_.score.better_by_sigmas > settings_.sigmas;
  verdict_.what = is_better ? learn_verdict::kind::better : learn_verdict::kind::not_better;
  if (!is_better)
    candidate_unit_.reset();
  score_.reset();
  counts_.halve();
  if (const auto merged = counts_.merge(held_); merged.failed()) // the same sets
    counts_.clear();
  return true;
}

void decoder_learner::restart() {
  candidate_unit_.reset();
  score_.reset();
  counts_.clear();
  in_phase_ = 0;
}

} // namespace cudaq::qec::realtime
