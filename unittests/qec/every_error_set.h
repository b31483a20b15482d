// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/dem.h"
#include "unittests/qec/qec_test_support.h"

#include <bit>
#include <cmath>
#include <map>
#include <random>

/// Small models whose least weights are found by trying every set of errors.
namespace cudaq::qec::realtime::test {

struct random_error {
  std::uint64_t detectors; ///< as a mask
  std::uint64_t observables;
  double probability;
};

inline std::string dem_of(const std::vector<random_error> &errors) {
  std::string dem;
  for (const random_error &e : errors) {
    dem += "error(" + std::to_string(e.probability) + ")";
    for (std::uint64_t bit = 0; bit < 64; ++bit)
      if ((e.detectors >> bit & 1U) != 0)
        dem += " D" + std::to_string(bit);
    for (std::uint64_t bit = 0; bit < 64; ++bit)
      if ((e.observables >> bit & 1U) != 0)
        dem += " L" + std::to_string(bit);
    dem += "\n";
  }
  return dem;
}

inline std::vector<std::uint64_t> indices_of(std::uint64_t mask) {
  std::vector<std::uint64_t> result;
  for (; mask != 0; mask &= mask - 1)
    result.push_back(static_cast<std::uint64_t>(std::countr_zero(mask)));
  return result;
}

/// Least weight of each (syndrome, observables), found by trying every set of errors.
using weights = std::map<std::uint64_t, std::map<std::uint64_t, double>>;
inline weights try_every_set(const std::vector<random_error> &errors) {
  weights least;
  for (std::uint64_t set = 0; set < std::uint64_t{1} << errors.size(); ++set) {
    std::uint64_t syndrome = 0;
    std::uint64_t observables = 0;
    double weight = 0;
    for (const std::uint64_t k : indices_of(set)) {
      syndrome ^= errors[k].detectors;
      observables ^= errors[k].observables;
      weight += std::log((1 - errors[k].probability) / errors[k].probability);
    }
    auto [at, is_new] = least[syndrome].try_emplace(observables, weight);
    if (!is_new)
      at->second = std::min(at->second, weight);
  }
  return least;
}

/// Distinct errors on a few detectors. A probability above 1/2 gives a negative weight.
inline std::vector<random_error> random_model(std::mt19937 &random, std::size_t max_detectors, double max_probability) {
  constexpr std::uint64_t kDetectors = 6;
  std::map<std::pair<std::uint64_t, std::uint64_t>, double> errors;
  while (errors.size() < 11) {
    std::uint64_t detectors = 0;
    for (std::size_t k = 0; k < max_detectors; ++k)
      detectors |= std::uint64_t{1} << (random() % kDetectors);
    const double probability = std::uniform_real_distribution(0.01, max_probability)(random);
    errors[{detectors, random() % 4}] = probability;
  }
  std::vector<random_error> result;
  for (const auto &[key, p] : errors)
    result.push_back({key.first, key.second, std::round(p * 1e6) / 1e6}); // as dem_of prints it
  return result;
}

/// Least weight of every (observable, syndrome), for the component of a model that has its one observable. Computed by
/// relaxing over single errors until nothing changes. Only the parser is shared with the table.
class relaxed_weights {
public:
  explicit relaxed_weights(const detector_error_model &model) {
    std::map<std::pair<std::uint64_t, std::uint64_t>, double> merged;
    for (const dem_component &c : model.components) {
      std::uint64_t mask = 0;
      for (const std::uint64_t d : model.detectors_of(c))
        mask |= std::uint64_t{1} << d;
      double &p = merged[{mask, c.observables}];
      p = p + c.probability - 2 * p * c.probability;
    }
    std::uint64_t part = 0;
    for (std::uint64_t before = 1; before != part;) {
      before = part;
      for (const auto &[key, p] : merged)
        if (key.second != 0 || (key.first & part) != 0)
          part |= key.first;
    }
    detectors = indices_of(part);
    best_.assign(std::size_t{2} << detectors.size(), kFar);
    best_[0] = 0;
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto &[key, p] : merged)
        if ((key.first & part) != 0)
          changed = relax(row_of(key.first) | key.second << detectors.size(), std::log((1 - p) / p)) || changed;
    }
  }

  /// Weights without and with the observable. Bit b of `row` is detectors[b].
  std::pair<double, double> of(std::uint64_t row) const {
    return {best_[row], best_[row | std::uint64_t{1} << detectors.size()]};
  }

  std::vector<std::uint64_t> detectors;

private:
  static constexpr double kFar = 1e9;

  bool relax(std::uint64_t flip, double weight) {
    bool changed = false;
    for (std::uint64_t state = 0; state < best_.size(); ++state)
      if (best_[state ^ flip] + weight < best_[state] - 1e-9) {
        best_[state] = best_[state ^ flip] + weight;
        changed = true;
      }
    return changed;
  }

  std::uint64_t row_of(std::uint64_t mask) const {
    std::uint64_t row = 0;
    for (std::uint64_t bit = 0; bit < detectors.size(); ++bit)
      row |= (mask >> detectors[bit] & 1U) << bit;
    return row;
  }

  std::vector<double> best_;
};

/// The decoder's answer to every syndrome belongs to a set of `errors` of least weight. `list`: what each shot replaces
/// in the decoder's model to have their probabilities.
inline void expect_least_of(decoder &with, const std::vector<random_error> &errors, shot_probabilities list = {}) {
  constexpr double kRounding = 1e-4; // weights are rounded to about 2^-20 of the largest
  const weights least = try_every_set(errors);
  for (std::uint64_t syndrome = 0; syndrome < std::uint64_t{1} << with.num_detectors(); ++syndrome) {
    const answer got = decode(with, indices_of(syndrome), list);
    const auto known = least.find(syndrome);
    if (known == least.end()) {
      EXPECT_EQ(got.status, decode_status::no_solution) << dem_of(errors) << "syndrome " << syndrome;
      continue;
    }
    ASSERT_EQ(got.status, decode_status::ok) << dem_of(errors) << "syndrome " << syndrome;
    double best = known->second.begin()->second;
    for (const auto &[observables, weight] : known->second)
      best = std::min(best, weight);
    const std::uint64_t flipped = got.observables.empty() ? 0 : got.observables[0];
    ASSERT_TRUE(known->second.contains(flipped)) << dem_of(errors) << "syndrome " << syndrome;
    EXPECT_NEAR(known->second.at(flipped), best, kRounding) << dem_of(errors) << "syndrome " << syndrome;
  }
}

/// The same for a decoder of these errors.
inline void expect_least(const std::string &kind, const std::vector<random_error> &errors) {
  expect_least_of(*make_or_throw(kind, dem_of(errors)), errors);
}

} // namespace cudaq::qec::realtime::test
