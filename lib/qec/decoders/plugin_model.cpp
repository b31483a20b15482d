// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/plugin_model.h"

#include "lib/qec/decoding/dem_text/dem_program.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <iterator>
#include <numeric>
#include <string>

namespace cudaq::qec::realtime {
namespace {

/// Never null: C functions may not get a null pointer, even for no bytes.
template <class T>
const T *data_of(const std::vector<T> &values) noexcept {
  static constexpr T kNothing{};
  return values.empty() ? &kNothing : values.data();
}

/// Adds a set to another modulo 2. Both are ascending.
void add_mod_2(std::vector<std::uint64_t> &sum, std::span<const std::uint64_t> more, std::vector<std::uint64_t> &room) {
  room.clear();
  std::ranges::set_symmetric_difference(sum, more, std::back_inserter(room));
  sum.swap(room);
}

plugin_model arrays_of(const detector_error_model &model, const std::vector<std::vector<double>> &coordinates) {
  plugin_model made;
  made.num_detectors = model.num_detectors;
  made.num_observables = model.num_observables;
  std::vector<std::uint64_t> detectors, observables, room;
  auto component = model.components.begin();
  for (std::uint64_t k = 0; k < model.num_errors; ++k) {
    double probability = 0;
    detectors.clear();
    observables.clear();
    for (; component != model.components.end() && component->mechanism == k; ++component) {
      probability = component->probability;
      made.components.add(model.detectors_of(*component), model.observables_of(*component));
      add_mod_2(detectors, model.detectors_of(*component), room);
      add_mod_2(observables, model.observables_of(*component), room);
    }
    made.errors.add(detectors, observables);
    made.probabilities.push_back(probability);
    made.first_component.push_back(made.components.rows());
  }
  for (const std::vector<double> &of_detector : coordinates) {
    made.coordinates.insert(made.coordinates.end(), of_detector.begin(), of_detector.end());
    made.first_coordinate.push_back(made.coordinates.size());
  }
  return made;
}

double weight_of(double probability) noexcept { return std::log((1 - probability) / probability); }

std::strong_ordering order(const flip_rows &rows, std::uint64_t a, std::uint64_t b) noexcept {
  const auto compared = [](std::span<const std::uint64_t> x, std::span<const std::uint64_t> y) {
    return std::lexicographical_compare_three_way(x.begin(), x.end(), y.begin(), y.end());
  };
  const auto detectors = compared(rows.detectors(a), rows.detectors(b));
  return detectors != 0 ? detectors : compared(rows.observables(a), rows.observables(b));
}

} // namespace

void flip_rows::add(std::span<const std::uint64_t> detectors, std::span<const std::uint64_t> observables) {
  detectors_.insert(detectors_.end(), detectors.begin(), detectors.end());
  observables_.insert(observables_.end(), observables.begin(), observables.end());
  first_detector_.push_back(detectors_.size());
  first_observable_.push_back(observables_.size());
}

cudaq_qec_decoder_flips_t flip_rows::view() const noexcept {
  return {rows(), first_detector_.data(), data_of(detectors_), first_observable_.data(), data_of(observables_)};
}

expected<plugin_model> plugin_model::of(const decoder_model &model) {
  const auto coordinates = model.coordinates();
  if (coordinates.failed())
    return coordinates.reason();
  return dem_text::or_reason([&] { return arrays_of(**model.errors(), *coordinates); });
}

cudaq_qec_decoder_errors_t plugin_model::view() const noexcept {
  return {sizeof(cudaq_qec_decoder_errors_t),
          errors.view(),
          data_of(probabilities),
          components.view(),
          first_component.data(),
          first_coordinate.data(),
          data_of(coordinates)};
}

plugin_weights::plugin_weights(const plugin_model &model, bool are_compared)
    : can_be_negative_(std::ranges::any_of(model.probabilities, [](double p) { return p > 0.5; })) {
  if (!are_compared || model.probabilities.empty())
    return;
  for (const double p : model.probabilities)
    alone_.push_back(static_cast<float>(weight_of(p)));
  together_ = alone_;
  if (!join_equal_errors(model))
    alone_.clear();
}

bool plugin_weights::join_equal_errors(const plugin_model &model) {
  std::vector<std::uint64_t> sorted(model.probabilities.size());
  std::iota(sorted.begin(), sorted.end(), std::uint64_t{0});
  std::ranges::sort(sorted, [&](std::uint64_t a, std::uint64_t b) { return order(model.errors, a, b) < 0; });
  for (auto first = sorted.begin(); first != sorted.end();) {
    const auto end =
        std::find_if(first + 1, sorted.end(), [&](std::uint64_t k) { return order(model.errors, *first, k) != 0; });
    if (end != first + 1) {
      double odd = 0, greatest = 0;
      for (auto k = first; k != end; ++k) {
        odd = merged_probability(odd, model.probabilities[*k]);
        greatest = std::max(greatest, model.probabilities[*k]);
      }
      if (greatest > 0.5)
        return false;
      for (auto k = first; k != end; ++k)
        together_[*k] = static_cast<float>(weight_of(odd));
    }
    first = end;
  }
  return true;
}

plugin_weights::interval plugin_weights::sums(std::span<const std::uint64_t> errors) const noexcept {
  constexpr double kRounding = 0.01;
  interval sum{-kRounding, kRounding};
  for (const std::uint64_t k : errors) {
    const double alone = alone_[k], together = together_[k], room = kRounding * std::abs(alone);
    sum.low += std::min(alone, together) - room;
    sum.high += std::max(alone, together) + room;
  }
  return sum;
}

} // namespace cudaq::qec::realtime
