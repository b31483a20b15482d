// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/qec_expected.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace cudaq::qec::realtime {

/// One component of an error: the targets between two `^`. A decoder treats the components of a decomposed error as
/// independent errors.
struct dem_component {
  double probability;
  std::uint64_t line;        ///< of the instruction in the text, from 1
  std::size_t first_target;  ///< into detector_error_model::targets
  std::uint32_t detectors;   ///< targets [first_target, + detectors): absolute detector indices, ascending
  std::uint32_t observables; ///< number of observable indices after these, ascending
  std::uint32_t mechanism; ///< which error instruction this belongs to: counts the unrolled ones from 0, in text order
};

/// A detector error model with its loops unrolled.
struct detector_error_model {
  std::uint64_t num_detectors = 0; ///< one more than the highest index seen, in any instruction
  std::uint64_t num_observables = 0;
  std::uint64_t num_errors = 0; ///< error instructions, also those without an effect
  std::vector<dem_component> components;
  std::vector<std::uint64_t> targets;

  std::span<const std::uint64_t> detectors_of(const dem_component &c) const noexcept {
    return std::span(targets).subspan(c.first_target, c.detectors);
  }
  std::span<const std::uint64_t> observables_of(const dem_component &c) const noexcept {
    return std::span(targets).subspan(c.first_target + c.detectors, c.observables);
  }
  /// Appends a component with these targets; of `like` it has probability, line and mechanism. The targets must not be
  /// this model's own.
  void add(dem_component like, std::span<const std::uint64_t> detectors, std::span<const std::uint64_t> observables) {
    like.first_target = targets.size();
    like.detectors = static_cast<std::uint32_t>(detectors.size());
    like.observables = static_cast<std::uint32_t>(observables.size());
    targets.insert(targets.end(), detectors.begin(), detectors.end());
    targets.insert(targets.end(), observables.begin(), observables.end());
    components.push_back(like);
  }
};

/// The largest model that is accepted. Reading a text of n bytes takes a time that is linear in n plus these limits,
/// and a decoder's memory is linear in them: a short text cannot ask for a large model.
struct dem_limits {
  std::uint64_t detectors = std::uint64_t{1} << 20;
  std::uint64_t observables = std::uint64_t{1} << 20;
  std::uint64_t instructions = std::uint64_t{1} << 24; ///< after loops are unrolled; each round of a loop counts as one
  std::uint64_t targets = std::uint64_t{1} << 26; ///< and coordinates, of all instructions after loops are unrolled
  std::uint64_t nesting = 1024;                   ///< of repeat blocks; the parser needs no stack for it, but Stim does
};

/// Parses Stim's text format. Accepts and refuses the same texts as Stim 1.16.0 when it reads a file,
/// except for the limits. docs/decoding.md, "The text of a model", describes the format. An error text begins
/// "line N: ".
///
/// `components` leaves out parts without an effect: errors of probability 0, and components without targets. A target
/// that stands in a component twice is flipped twice, so it is left out, too. All count for the size of the model.
[[nodiscard]] expected<detector_error_model> parse_dem(std::string_view text, const dem_limits &limits = {});

/// A number that two models share if they have the same sizes and the same errors, whatever the order of the lines.
/// Comments, coordinates and the writing of numbers do not count.
[[nodiscard]] std::uint64_t model_digest(const detector_error_model &model) noexcept;

/// log((1 - p) / p) for 0 < p < 1, the weight of an error. The quotient decides the rounding, as in PyMatching; it is
/// infinite for a probability near the smallest double, then the weight is -log(p).
[[nodiscard]] double log_odds(double probability) noexcept;

/// The probability that exactly one of two independent errors happens: equal errors of a model merge to one with it.
[[nodiscard]] double merged_probability(double p, double q) noexcept;

} // namespace cudaq::qec::realtime
