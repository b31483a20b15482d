// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/decoder_model.h"
#include "lib/qec/decoding/dem.h"
#include "unittests/qec/qec_test_support.h"

#include <algorithm>
#include <random>

/// Shots that replace probabilities, and the decoders that are made for such a shot alone.
namespace cudaq::qec::realtime::test {

using shot_list = std::vector<error_probability>;

inline detector_error_model parse_or_throw(std::string_view text) {
  auto model = parse_dem(text);
  if (model.failed())
    throw std::runtime_error(model.text());
  return std::move(*model);
}

/// Replaces about `share` of the errors, by probabilities of all kinds up to `highest`.
inline shot_list random_list(const detector_error_model &model, double share, double highest, std::mt19937 &random) {
  constexpr double kSpecial[] = {0, 1e-12, 1e-9, 0.25, 0.5, 0.75, 1};
  std::uniform_real_distribution<double> uniform(0, 1);
  shot_list list;
  std::uint64_t before = UINT64_MAX;
  for (const dem_component &c : model.components) {
    if (c.mechanism == before || uniform(random) >= share)
      continue;
    before = c.mechanism;
    const double p = random() % 2 == 0 ? kSpecial[random() % std::size(kSpecial)] : uniform(random);
    list.push_back({c.mechanism, p <= highest ? p : p * highest});
  }
  std::ranges::shuffle(list, random);
  return list;
}

/// The text of the model that has the probabilities of this shot, all of them from `smallest` to 1 - `smallest`.
inline std::string model_of_shot(detector_error_model model, const shot_list &list, double smallest) {
  for (dem_component &c : model.components) {
    for (const error_probability &one : list)
      if (one.error == c.mechanism)
        c.probability = one.probability;
    c.probability = std::clamp(c.probability, smallest, 1 - smallest);
  }
  return text_of(model);
}

struct weighed_answer {
  answer found;
  double weight;
};

inline weighed_answer weigh(decoder &with, const std::vector<std::uint64_t> &events, const shot_list &list = {}) {
  decode_details details;
  std::vector<std::uint8_t> out(with.observable_bytes(), 0xEE);
  const decode_status status = with.decode(events, out, list, &details);
  return {{status, out}, details.weight};
}

} // namespace cudaq::qec::realtime::test
