// SPDX-License-Identifier: Apache-2.0
#include "cudaq/qec/decoding/learning.h"

#include "lib/qec/decoding/model_text_file.h"
#include "lib/qec/learning/data_checks.h"
#include "lib/qec/learning/offline_learning.h"

#include <cmath>
#include <new>

namespace cudaq::qec::realtime {

struct rate_learner::content {
  std::string dem;
  std::size_t num_detectors;
  offline_learning learning;
};

rate_learner::rate_learner(std::unique_ptr<content> all) noexcept : all_(std::move(all)) {}
rate_learner::~rate_learner() = default;

std::size_t rate_learner::num_detectors() const noexcept { return all_->num_detectors; }

decode_status rate_learner::add(std::span<const std::uint8_t> shot) { return all_->learning.add(shot); }

learning_report_result rate_learner::finish() {
  try {
    const expected<offline_result> result = all_->learning.finish();
    if (result.failed())
      return {nullptr, result.text()};
    const learned_rates &rates = result->rates;
    auto report = std::make_unique<learning_report>();
    report->dem = rates.refusals.empty() ? text_with(all_->dem, rates) : all_->dem;
    report->refusals = rates.refusals;
    for (const learned_rate &one : rates.errors)
      report->errors.push_back(
          {one.mechanism, one.line, one.model, one.rate, one.sigma, one.low, one.high, one.resolved});
    for (const detector_rate &one : rates.detectors)
      report->detectors.push_back({one.now, one.model, one.sigmas});
    if (const auto &score = result->score)
      report->score = learned_score{score->per_shot, score->sigma, score->blocks, score->better_by_sigmas};
    report->shots = result->learned_from;
    report->held_out_shots = result->held_out;
    report->variation = rates.variation;
    return {std::move(report), {}};
  } catch (const std::bad_alloc &) {
    return {nullptr, "out of memory"};
  }
}

rate_learner_result make_rate_learner(std::string_view dem_text, const learning_settings &settings) {
  const auto refused = [](const char *what, double value, const char *accepted) {
    return rate_learner_result{nullptr, std::string(what) + " is " + short_number(value) + ", accepted: " + accepted};
  };
  if (!(settings.held_out >= 0 && settings.held_out <= 0.9))
    return refused("held_out", settings.held_out, "0 to 0.9");
  if (!(settings.prior >= 1.01 && settings.prior <= 1e6))
    return refused("prior", settings.prior, "1.01 to 1e6");
  try {
    auto model = parse_dem(dem_text);
    if (model.failed())
      return {nullptr, model.text()};
    learning_options options;
    options.prior_sigma = std::log(settings.prior);
    if (!settings.tied.empty()) {
      auto groups = parse_tied(settings.tied, crc32_of(dem_text));
      if (groups.failed())
        return {nullptr, "tied: " + groups.text()};
      options.tied = std::move(*groups);
    }
    const std::size_t num_detectors = model->num_detectors;
    auto learning = offline_learning::of(std::move(*model), std::move(options), settings.held_out);
    if (learning.failed())
      return {nullptr, learning.text()};
    return {std::make_unique<rate_learner>(std::make_unique<rate_learner::content>(
                rate_learner::content{std::string(dem_text), num_detectors, std::move(*learning)})),
            {}};
  } catch (const std::bad_alloc &) {
    return {nullptr, "out of memory"};
  }
}

} // namespace cudaq::qec::realtime
