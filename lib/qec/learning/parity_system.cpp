// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/learning/parity_system.h"

#include <algorithm>
#include <bit>
#include <map>

namespace cudaq::qec::realtime {
namespace {

/// Sums with a term for many numbers, of which few are not 0.
class sum_of_terms {
public:
  explicit sum_of_terms(std::size_t numbers) : coefficients_(numbers) {}

  void add(std::uint32_t number, double coefficient) {
    if (coefficients_[number] == 0)
      touched_.push_back(number);
    coefficients_[number] += coefficient;
  }
  void add(const linear_form &form, double factor) {
    for (const auto &[number, coefficient] : form)
      add(number, coefficient * factor);
  }
  /// The sum, which is 0 then.
  linear_form take() {
    linear_form form;
    std::ranges::sort(touched_);
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const std::uint32_t number : touched_) {
      // Terms that cancel leave what was lost by rounding.
      if (std::abs(coefficients_[number]) > 1e-9)
        form.emplace_back(number, coefficients_[number]);
      coefficients_[number] = 0;
    }
    touched_.clear();
    return form;
  }

private:
  std::vector<double> coefficients_;
  std::vector<std::uint32_t> touched_;
};

} // namespace

parity_system::parity_system(const std::vector<whole_error> &errors, const parity_sets &sets)
    : num_parities_(sets.size()), num_detectors_(sets.num_detectors()) {
  std::map<std::span<const std::uint32_t>, std::uint32_t,
           decltype([](auto a, auto b) { return std::ranges::lexicographical_compare(a, b); })>
      known;
  for (const whole_error &error : errors) {
    if (error.detectors.empty()) {
      of_error_.push_back(kNone);
      continue;
    }
    const auto [at, is_new] = known.emplace(error.detectors, static_cast<std::uint32_t>(flipped_.size()));
    if (is_new) {
      flipped_.push_back(&error.detectors);
      const std::size_t parity =
          error.detectors.size() <= parity_sets::kWholeSubsets ? sets.find(error.detectors) : parity_sets::kNone;
      parity_of_.push_back(parity == parity_sets::kNone ? kNone : static_cast<std::uint32_t>(parity));
    }
    of_error_.push_back(at->second);
  }
  std::vector<std::vector<std::uint32_t>> parities_with(num_detectors_);
  for (std::uint32_t k = 0; k < num_parities_; ++k)
    for (const std::uint32_t d : sets[k])
      parities_with[d].push_back(k);
  std::vector<char> is_odd(num_parities_);
  odd_sets_.resize(num_parities_);
  for (std::uint32_t s = 0; s < size(); ++s) {
    std::vector<std::uint32_t> &odd = odd_parities_.emplace_back();
    for (const std::uint32_t d : detectors_of(s))
      for (const std::uint32_t k : parities_with[d])
        if ((is_odd[k] ^= 1) != 0)
          odd.push_back(k);
    std::erase_if(odd, [&](std::uint32_t k) { return is_odd[k] == 0; });
    std::ranges::sort(odd);
    odd.erase(std::unique(odd.begin(), odd.end()), odd.end());
    for (const std::uint32_t k : odd) {
      is_odd[k] = 0;
      odd_sets_[k].push_back(s);
    }
  }
  make_forms(sets);
}

void parity_system::make_forms(const parity_sets &sets) {
  std::vector<std::uint32_t> set_with(num_parities_, kNone); // whose detectors are those of the parity
  std::vector<std::vector<std::uint32_t>> sets_with(num_detectors_);
  for (std::uint32_t s = 0; s < size(); ++s) {
    if (is_measured(s))
      set_with[parity_of_[s]] = s;
    for (const std::uint32_t d : detectors_of(s))
      sets_with[d].push_back(s);
  }
  // From large to small: the forms of all that have more detectors are known.
  std::vector<std::uint32_t> order(size());
  for (std::uint32_t s = 0; s < size(); ++s)
    order[s] = s;
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::uint32_t s) { return flipped_[s]->size(); });
  forms_.resize(size());
  sum_of_terms sum(num_unknowns());
  std::vector<std::uint32_t> subset;
  for (const std::uint32_t s : order) {
    if (!is_measured(s))
      continue;
    const std::span<const std::uint32_t> all = detectors_of(s);
    const double scale = std::ldexp(1.0, 1 - static_cast<int>(all.size()));
    for (std::uint32_t members = 1; members < 1U << all.size(); ++members) {
      subset.clear();
      for (std::size_t i = 0; i < all.size(); ++i)
        if ((members >> i & 1) != 0)
          subset.push_back(all[i]);
      sum.add(static_cast<std::uint32_t>(sets.find(subset)), subset.size() % 2 != 0 ? scale : -scale);
    }
    for (const std::uint32_t larger : sets_with[all.front()]) {
      if (flipped_[larger]->size() <= all.size() || !std::ranges::includes(detectors_of(larger), all))
        continue;
      if (is_measured(larger))
        sum.add(forms_[larger], -1);
      else
        sum.add(static_cast<std::uint32_t>(num_parities_ + larger), -1);
    }
    forms_[s] = sum.take();
  }
}

std::vector<double> parity_system::of_detectors(std::span<const double> exponents) const {
  std::vector<double> sums(num_detectors_);
  for (std::size_t s = 0; s < size(); ++s)
    for (const std::uint32_t d : detectors_of(s))
      sums[d] += exponents[s];
  return sums;
}

parity_system::spreads parity_system::variances(std::span<const linear_form *const> forms,
                                                std::span<const double> exponents, double shots) const {
  spreads found{std::vector<double>(forms.size()), 0};
  struct use {
    std::uint32_t form;
    double coefficient;
  };
  std::vector<std::vector<use>> uses(num_parities_);
  for (std::uint32_t f = 0; f < forms.size(); ++f)
    for (const auto &[k, coefficient] : *forms[f])
      if (k < num_parities_) // the others are no counts
        uses[k].push_back({f, coefficient});
  const std::vector<double> of_single = of_detectors(exponents);
  std::vector<double> covariance(num_parities_);
  std::vector<std::uint32_t> touched;
  for (std::uint32_t k = 0; k < num_parities_; ++k) {
    const bool is_detector = k < num_detectors_;
    if (uses[k].empty() && !is_detector)
      continue;
    touched.clear();
    for (const std::uint32_t s : odd_sets_[k])
      for (const std::uint32_t other : odd_parities_[s]) {
        if (covariance[other] == 0)
          touched.push_back(other);
        covariance[other] += exponents[s];
      }
    for (const std::uint32_t other : touched)
      covariance[other] = std::expm1(4 * covariance[other]) / 4;
    for (const use &one : uses[k]) {
      double sum = 0;
      const linear_form &form = *forms[one.form];
      if (form.size() <= 8 * touched.size()) {
        for (const auto &[other, coefficient] : form)
          sum += other < num_parities_ ? coefficient * covariance[other] : 0;
      } else {
        for (const std::uint32_t other : touched) {
          const auto at = std::ranges::lower_bound(form, other, {}, &linear_form::value_type::first);
          sum += at != form.end() && at->first == other ? at->second * covariance[other] : 0;
        }
      }
      found.of_forms[one.form] += one.coefficient * sum / shots;
    }
    if (is_detector) // covariance of the bits: that of y times both 1 - 2x
      for (const std::uint32_t other : touched)
        if (other < num_detectors_)
          found.of_events += covariance[other] * std::exp(-2 * (of_single[k] + of_single[other]));
    for (const std::uint32_t other : touched)
      covariance[other] = 0;
  }
  return found;
}

} // namespace cudaq::qec::realtime
