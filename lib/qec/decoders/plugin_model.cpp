// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/plugin_model.h"

#include "lib/qec/decoding/dem_text/dem_program.h"

#include <algorithm>
#include <exception>
#include <iterator>
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

expected<plugin_model> plugin_model::parse(std::string_view dem_text) {
  try {
    const dem_limits limits;
    dem_text::unrolled_detectors notes{.time = {}, .wants_coordinates = true, .coordinates = {}};
    const detector_error_model model =
        dem_text::unroll(dem_text::read_program(dem_text, limits), limits, SIZE_MAX, 0, &notes);
    return arrays_of(model, notes.coordinates);
  } catch (const dem_text::dem_error &failure) {
    return reason(failure.what());
  } catch (const std::exception &failure) {
    return reason(std::string("the model does not fit into memory: ") + failure.what());
  }
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

} // namespace cudaq::qec::realtime
