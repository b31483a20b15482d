// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/model_sampler.h"
#include "lib/qec/decoding/splitmix.h"
#include "lib/qec/learning/learned_rates.h"
#include "lib/qec/learning/parity_system.h"
#include "unittests/qec/qec_test_support.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace cudaq::qec::realtime::test {

using shot_bytes = std::vector<std::uint8_t>;

inline detector_error_model model_of(std::string_view text) {
  expected<detector_error_model> model = parse_dem(text);
  if (model.failed())
    throw std::runtime_error(model.text());
  return std::move(*model);
}

/// The rotated surface code of distance 3, with its whole errors: 24 detectors, 219 sets of detectors.
inline detector_error_model surface_code() { return model_of(load_committed("surface_z_d3_p0.005").dem_text); }

inline std::shared_ptr<const parity_sets> sets_of(const detector_error_model &model) {
  auto sets = parity_sets::of(model);
  if (sets.failed())
    throw std::runtime_error(sets.text());
  return *sets;
}

/// Each exponent -1/2 ln(1 - 2p) times the factor that `of` gives for its first component.
inline detector_error_model
with_factors(detector_error_model model,
             const std::function<double(const detector_error_model &, const dem_component &)> &of) {
  for (std::size_t k = 0; k < model.components.size(); ++k) {
    const bool is_first = k == 0 || model.components[k].mechanism != model.components[k - 1].mechanism;
    model.components[k].probability =
        is_first ? probability_of(of(model, model.components[k]) * exponent_of(model.components[k].probability))
                 : model.components[k - 1].probability;
  }
  return model;
}

/// Half or double, by the whole set of the error's detectors: those that share it cannot be distinguished.
inline double half_or_double(const detector_error_model &model, const dem_component &of) {
  std::uint64_t sum = 0;
  for (const dem_component &component : model.components)
    if (component.mechanism == of.mechanism)
      for (const std::uint64_t d : model.detectors_of(component))
        sum ^= splitmix(d + 1);
  return sum % 2 != 0 ? 2 : 0.5;
}

/// Calls use(shot) for each sampled shot, which it may change.
template <class Use>
void sample_shots(const detector_error_model &model, std::size_t shots, std::uint64_t seed, const Use &use) {
  const model_sampler sampler(model);
  std::mt19937_64 random(seed);
  shot_bytes shot(sampler.shot_bytes()), observables(sampler.observable_bytes());
  for (std::size_t k = 0; k < shots; ++k) {
    std::ranges::fill(shot, std::uint8_t{0});
    std::ranges::fill(observables, std::uint8_t{0});
    sampler.sample(random, shot, observables);
    use(shot);
  }
}

inline event_counts counts_of(const detector_error_model &model, std::size_t shots, std::uint64_t seed) {
  event_counts counts(sets_of(model));
  sample_shots(model, shots, seed, [&](const shot_bytes &shot) { EXPECT_EQ(counts.add(shot), decode_status::ok); });
  counts.flush();
  return counts;
}

inline learned_rates learn_or_throw(const detector_error_model &model, const event_counts &counts,
                                    const learning_options &options = {}) {
  expected<learned_rates> rates = learn_rates(model, counts, options);
  if (rates.failed())
    throw std::runtime_error(rates.text());
  return std::move(*rates);
}

} // namespace cudaq::qec::realtime::test
