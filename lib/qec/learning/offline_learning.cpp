// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/learning/offline_learning.h"

#include "lib/qec/learning/data_checks.h"

namespace cudaq::qec::realtime {

expected<offline_learning> offline_learning::of(detector_error_model model, learning_options options, double held_out) {
  if (!(held_out >= 0 && held_out < 1))
    return reason("the share of held-out shots is " + short_number(held_out) + ", accepted: from 0 to below 1");
  expected<std::shared_ptr<const parity_sets>> sets = learnable_sets(model, options);
  if (sets.failed())
    return sets.reason();
  return offline_learning(std::move(model), std::move(options), held_out, std::move(*sets));
}

decode_status offline_learning::add(std::span<const std::uint8_t> shot) {
  const auto blocks_until = [this](std::uint64_t block) {
    return static_cast<std::uint64_t>(static_cast<double>(block) * held_out_);
  };
  const std::uint64_t block = shots_ / kBlock;
  const bool is_held_out =
      blocks_until(block + 1) != blocks_until(block) && kept_.size() + shot.size() <= kMaxHeldOutBytes;
  if (!is_held_out) {
    const decode_status status = counts_.add(shot);
    shots_ += status == decode_status::ok ? 1 : 0;
    return status;
  }
  const std::size_t detectors = counts_.sets()->num_detectors(), bytes = (detectors + 7) / 8;
  if (shot.size() < bytes)
    return decode_status::buffer_too_small;
  for (std::size_t k = bytes - 1; k < shot.size(); ++k)
    if ((k >= bytes ? shot[k] : detectors % 8 == 0 ? 0 : shot[k] >> detectors % 8) != 0)
      return decode_status::bad_detector_index;
  kept_.insert(kept_.end(), shot.begin(), shot.begin() + static_cast<std::ptrdiff_t>(bytes));
  ++num_kept_;
  ++shots_;
  return decode_status::ok;
}

expected<offline_result> offline_learning::finish() {
  counts_.flush();
  expected<learned_rates> rates = learn_rates(model_, counts_, options_);
  if (rates.failed())
    return rates.reason();
  offline_result result{std::move(*rates), shots_ - num_kept_, num_kept_, std::nullopt};
  if (num_kept_ == 0)
    return result;
  model_score score(counts_.sets(), model_, model_with(model_, result.rates), kBlock);
  const std::size_t bytes = kept_.size() / num_kept_;
  for (std::size_t k = 0; k < num_kept_; ++k)
    (void)score.add(std::span(kept_).subspan(k * bytes, bytes)); // add() has checked it
  result.score = score.difference();
  if (result.score->better_by_sigmas < -3)
    result.rates.refusals.push_back("on " + std::to_string(num_kept_) +
                                    " held-out shots the learned model is worse than the one that was there, by " +
                                    short_number(-result.score->better_by_sigmas) + " sigma");
  return result;
}

} // namespace cudaq::qec::realtime
