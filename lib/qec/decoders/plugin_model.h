// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decoder_plugin.h"
#include "lib/qec/decoding/decoder_model.h"

#include <cstdint>
#include <span>
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

  /// A reason is that of model.errors().
  [[nodiscard]] static expected<plugin_model> of(const decoder_model &model);
  /// Valid as long as this object.
  [[nodiscard]] cudaq_qec_decoder_errors_t view() const noexcept;
};

/// Which weights corrections of a model can have: sums of log((1 - p) / p). A decoder may count equal errors (the same
/// detectors and observables) by themselves or as one error, with the probability that an odd number of them happens.
/// So the weight is in an interval. Example: two equal errors of 0.1 and one of 0.2.
///
///   correction                  weight of each    as one: p = 0.18   interval
///   an equal error              log(9) = 2.20     1.52               1.52 to 2.20
///   an equal error, the other   2.20 + 1.39       1.52 + 1.39        2.91 to 3.59
class plugin_weights {
public:
  struct interval {
    double low = 0, high = 0;
  };

  plugin_weights() = default;
  /// `are_compared`: sums() is wanted. Takes a time that is linear in the model, and n log n in its errors. Throws
  /// std::bad_alloc.
  plugin_weights(const plugin_model &model, bool are_compared);

  /// An error of the model is above 1/2, so its weight is below 0.
  [[nodiscard]] bool can_be_negative() const noexcept { return can_be_negative_; }
  /// sums() is known. False also if an error above 1/2 has equal ones: there are many ways to count these.
  [[nodiscard]] bool are_compared() const noexcept { return !alone_.empty(); }
  /// Of a correction of these errors, with room for rounding: 1 % of each weight, and 0.01 of all. Only if
  /// are_compared().
  [[nodiscard]] interval sums(std::span<const std::uint64_t> errors) const noexcept;

private:
  /// Sets together_; false: an error above 1/2 has equal ones.
  bool join_equal_errors(const plugin_model &model);

  bool can_be_negative_ = false;
  std::vector<float> alone_;    ///< of each error
  std::vector<float> together_; ///< of each error and its equal ones as one error
};

} // namespace cudaq::qec::realtime
