// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decoder.h"

#include "lib/qec/decoders/decoder_name.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace cudaq::qec::realtime {

/// The setting smallest_probability: its default, and its limits.
inline constexpr double kSmallestProbability = 1e-9, kMinSmallest = 1e-15, kMaxSmallest = 0.01;

inline double smallest_of(decoder_settings &settings, double otherwise = kSmallestProbability) {
  return settings.real("smallest_probability", otherwise, kMinSmallest, kMaxSmallest);
}

/// Probabilities of a shot outside `smallest` to 1 - `smallest` count as the nearer of the two: so weights are finite.
inline double clamped_probability(double p, double smallest) noexcept { return std::clamp(p, smallest, 1 - smallest); }

/// Checks what a shot replaces.
class replaced_errors {
public:
  explicit replaced_errors(std::uint64_t num_errors) : place_(static_cast<std::size_t>(num_errors)) {}

  /// Whether each error of the list is one of the model, listed once, with a probability from 0 to `highest`, and none
  /// of which `why_not(error)` is not null, a text. If not, fault() has the first entry that is wrong.
  template <class WhyNot>
  [[nodiscard]] bool check(shot_probabilities list, double highest, WhyNot &&why_not) noexcept {
    fault_.front() = '\0';
    for (std::size_t k = 0; k < list.size(); ++k) {
      const error_probability &one = list[k];
      if (one.error >= place_.size())
        return refuse(one, "is not one of the model");
      if (!(one.probability >= 0 && one.probability <= 1))
        return refuse(one, "has a probability that is not from 0 to 1");
      if (one.probability > highest)
        return refuse(one, "has a probability above 1/2, which has no correlated weight; pymatching takes it");
      // Whether the place is one of this list is random: without a branch.
      const std::size_t before = std::min<std::size_t>(place_[one.error], k);
      if (static_cast<int>(before != k) & static_cast<int>(list[before].error == one.error))
        return refuse(one, "is listed twice");
      place_[one.error] = static_cast<std::uint32_t>(k); // at most the number of errors, since none is listed twice
      if (const char *const text = why_not(one.error))
        return refuse(one, text);
    }
    return true;
  }
  /// The entry of an error of the model in the list of the last check, which was right, or in its begin; null: none.
  [[nodiscard]] const error_probability *find(shot_probabilities list, std::uint64_t error) const noexcept {
    const std::uint32_t at = place_[error]; // of an earlier list, if the entry has another error
    return at < list.size() && list[at].error == error ? &list[at] : nullptr;
  }
  /// "error 17 (0.25): is listed twice"; "" if the last list was right.
  [[nodiscard]] const char *fault() const noexcept { return fault_.data(); }
  /// Of what came after the check; "": nothing.
  void set_fault(const char *text) noexcept;

private:
  bool refuse(const error_probability &one, const char *text) noexcept;

  std::vector<std::uint32_t> place_; ///< of each error: where it is in the last list that had it
  std::array<char, 192> fault_{};
};

} // namespace cudaq::qec::realtime
