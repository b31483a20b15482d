// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/model_detectors.h"

#include "lib/qec/decoders/heralds/herald_list.h"

#include <algorithm>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

/// The probability that a detector fires is (1 - product) / 2 over its errors' 1 - 2 p.
std::vector<model_detector> detectors_of(const detector_error_model &model,
                                         const std::vector<std::vector<double>> &coordinates) {
  const auto number = static_cast<std::size_t>(model.num_detectors);
  std::vector<double> product(number, 1);
  std::vector<std::uint64_t> flipped; // by one error; twice is not at all
  for (auto component = model.components.begin(); component != model.components.end();) {
    const dem_component &first = *component;
    flipped.clear();
    for (; component != model.components.end() && component->mechanism == first.mechanism; ++component) {
      const auto of_component = model.detectors_of(*component);
      flipped.insert(flipped.end(), of_component.begin(), of_component.end());
    }
    std::ranges::sort(flipped);
    for (std::size_t k = 0; k < flipped.size(); ++k)
      if (k + 1 < flipped.size() && flipped[k] == flipped[k + 1])
        ++k;
      else
        product[static_cast<std::size_t>(flipped[k])] *= 1 - 2 * first.probability;
  }
  std::vector<model_detector> all(number);
  for (std::size_t d = 0; d < number; ++d) {
    all[d].rate = (1 - product[d]) / 2;
    if (d >= coordinates.size() || coordinates[d].size() < 2)
      continue;
    const std::vector<double> &at = coordinates[d];
    all[d].x = at[0];
    all[d].y = at.size() > 2 ? at[1] : 0;
    all[d].time = at[std::min<std::size_t>(at.size() - 1, 2)];
  }
  return all;
}

} // namespace

expected<model_detectors> detectors_of(const decoder_model &model, const std::string &heralds) {
  const auto coordinates = model.coordinates();
  if (coordinates.failed())
    return coordinates.reason();
  model_detectors made{.all = detectors_of(**model.errors(), *coordinates)};
  if (!heralds.empty()) {
    const auto list = parse_heralds(heralds, model);
    if (list.failed())
      return reason(list.status(), "heralds: " + list.text());
    std::vector<model_detector> of_model = std::exchange(made.all, {});
    for (const std::uint64_t meaning : list->meaning)
      made.all.push_back((meaning & herald_list::kHerald) != 0 ? model_detector()
                                                               : of_model[static_cast<std::size_t>(meaning)]);
  }
  made.body = made.all.size();
  return made;
}

expected<model_detectors> detectors_of(const stream_source &source) {
  const repeating_model &model = source.model;
  const std::uint64_t far =
      std::min<std::uint64_t>(model.reach() / std::max<std::size_t>(model.body().size(), 1) + 1, 8);
  dem_text::unrolled_detectors notes{.time = {}, .wants_coordinates = true, .coordinates = {}};
  const auto unrolled = model.unrolled(2 * far + 1, &notes);
  if (unrolled.failed())
    return unrolled.reason();
  std::vector<model_detector> all = detectors_of(*unrolled, notes.coordinates);
  all.resize(static_cast<std::size_t>(model.head_detectors() + (2 * far + 1) * model.body_detectors() +
                                      model.tail_detectors()));
  for (const heralded_error &one : source.heralds.unrolled(2 * far + 1))
    all[static_cast<std::size_t>(one.herald)].rate = kUnknown;
  const auto erase = [&all](std::uint64_t begin, std::uint64_t end) {
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end));
  };
  const std::uint64_t head = model.head_detectors(), body = model.body_detectors();
  erase(head + (far + 1) * body, head + (2 * far + 1) * body); // the later ones first
  erase(head, head + far * body);
  return model_detectors{.all = std::move(all), .head = head, .body = body, .tail = model.tail_detectors()};
}

} // namespace cudaq::qec::realtime
