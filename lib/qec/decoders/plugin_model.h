// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decoder_plugin.h"
#include "lib/qec/decoding/qec_expected.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace cudaq::qec::realtime {

/// The memory of a cudaq_qec_decoder_flips_t.
class flip_rows {
public:
  /// Adds a row. Ascending, each once.
  void add(std::span<const std::uint64_t> detectors, std::span<const std::uint64_t> observables);
  [[nodiscard]] std::uint64_t rows() const noexcept { return first_detector_.size() - 1; }
  [[nodiscard]] std::span<const std::uint64_t> detectors(std::uint64_t row) const noexcept {
    return std::span(detectors_).subspan(first_detector_[row], first_detector_[row + 1] - first_detector_[row]);
  }
  [[nodiscard]] std::span<const std::uint64_t> observables(std::uint64_t row) const noexcept {
    return std::span(observables_).subspan(first_observable_[row], first_observable_[row + 1] - first_observable_[row]);
  }
  [[nodiscard]] cudaq_qec_decoder_flips_t view() const noexcept;

private:
  std::vector<std::uint64_t> first_detector_{0}, first_observable_{0}, detectors_, observables_;
};

/// The memory of a cudaq_qec_decoder_errors_t.
struct plugin_model {
  std::uint64_t num_detectors = 0, num_observables = 0;
  flip_rows errors, components;
  std::vector<double> probabilities;
  std::vector<std::uint64_t> first_component{0}, first_coordinate{0};
  std::vector<double> coordinates;

  /// As parse_dem. A reason has the line of the text.
  [[nodiscard]] static expected<plugin_model> parse(std::string_view dem_text);
  /// Valid as long as this object.
  [[nodiscard]] cudaq_qec_decoder_errors_t view() const noexcept;
};

} // namespace cudaq::qec::realtime
