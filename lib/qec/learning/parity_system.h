// SPDX-License-Identifier: Apache-2.0
// The equations between the parities of sets of detectors and the errors of a model. Inside this room only.
//
// An error e has the exponent t_e = -1/2 ln(1 - 2p), the parity of a set A has y_A = -1/2 ln(1 - 2 P(1)). For
// independent errors y_A is the sum of t_e over the errors that flip an odd number of A. The alternating sum of y over
// the subsets of A is, over 2^(|A| - 1), the sum of t over the errors that flip all of A. From the largest errors down
// this gives each t as a sum of y. Example: errors {0}, {0,1} and {1}:
//
//   t_01 = (y_0 + y_1 - y_01) / 2        t_0 = y_0 - t_01        t_1 = y_1 - t_01
//
// Counts of n shots estimate y with the covariance (exp(4 T_AB) - 1) / 4n, where T_AB is the sum of t over the errors
// that flip an odd number of A and an odd number of B.
#pragma once

#include "lib/qec/learning/event_counts.h"
#include "lib/qec/learning/whole_error.h"

#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace cudaq::qec::realtime {

inline double exponent_of(double probability) noexcept { return -0.5 * std::log1p(-2 * probability); }
inline double probability_of(double exponent) noexcept { return -0.5 * std::expm1(-2 * exponent); }

/// A sum of terms: number and coefficient.
using linear_form = std::vector<std::pair<std::uint32_t, double>>;

class parity_system {
public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  parity_system(const std::vector<whole_error> &errors, const parity_sets &sets);

  /// The different sets of detectors that errors flip.
  [[nodiscard]] std::size_t size() const noexcept { return flipped_.size(); }
  /// The set of an error; kNone: it flips no detector.
  [[nodiscard]] std::uint32_t flipped_by(std::size_t error) const noexcept { return of_error_[error]; }
  /// False: it has so many detectors that its subsets are not counted.
  [[nodiscard]] bool is_measured(std::size_t set) const noexcept { return parity_of_[set] != kNone; }
  /// Ascending.
  [[nodiscard]] std::span<const std::uint32_t> detectors_of(std::size_t set) const noexcept { return *flipped_[set]; }

  /// The exponent of a measured set as a sum of unknowns: number k < sets.size() is y of parity k, number sets.size()
  /// + s is the exponent of set s, which is not measured.
  [[nodiscard]] const linear_form &form(std::size_t set) const noexcept { return forms_[set]; }
  [[nodiscard]] std::size_t num_unknowns() const noexcept { return num_parities_ + size(); }

  /// y of each single detector, for these exponents of the sets.
  [[nodiscard]] std::vector<double> of_detectors(std::span<const double> exponents) const;

  struct spreads {
    std::vector<double> of_forms; ///< the variance of each
    double of_events = 0;         ///< variance of the number of events of a shot
  };
  /// For counts of this many shots; `exponents`: those of the sets.
  [[nodiscard]] spreads variances(std::span<const linear_form *const> forms, std::span<const double> exponents,
                                  double shots) const;

private:
  void make_forms(const parity_sets &sets);

  std::size_t num_parities_, num_detectors_;
  std::vector<const std::vector<std::uint32_t> *> flipped_; ///< of an error in the constructor's list
  std::vector<std::uint32_t> of_error_, parity_of_;
  std::vector<linear_form> forms_;
  /// For each set the parities of which it flips an odd number of detectors, and for each parity those sets.
  std::vector<std::vector<std::uint32_t>> odd_parities_, odd_sets_;
};

} // namespace cudaq::qec::realtime
