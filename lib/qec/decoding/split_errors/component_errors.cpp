// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/split_errors/component_errors.h"

#include "lib/qec/decoding/splitmix.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

/// Whether the component is one of several of its error.
bool is_part(const std::vector<dem_component> &all, std::size_t k) {
  return (k > 0 && all[k - 1].mechanism == all[k].mechanism) ||
         (k + 1 < all.size() && all[k + 1].mechanism == all[k].mechanism);
}

std::string name_of(const detector_error_model &model, const dem_component &c) {
  std::string text;
  for (const std::uint64_t detector : model.detectors_of(c))
    text += " D" + std::to_string(detector);
  for (const std::uint64_t observable : model.observables_of(c))
    text += " L" + std::to_string(observable);
  return text.substr(1);
}

/// Errors with the same detectors and observables: the probability that an odd number of them happens.
struct variant {
  double unsplit = 0; ///< of those that are not split
  double all = 0;
  const dem_component *first = nullptr; ///< of them
};

/// Sums of the same probabilities in another order differ in the last bits: codes of distance 2 have such ties.
constexpr double kAlmost = 1 - 1e-9;

/// Whether components of split errors change what the errors with these detectors mean: which observables are the
/// likeliest. `same`: all components with these detectors.
expected<> check_group(const detector_error_model &model, std::span<const std::size_t> same) {
  std::map<std::vector<std::uint64_t>, variant> variants;
  for (const std::size_t k : same) {
    const dem_component &c = model.components[k];
    const auto observables = model.observables_of(c);
    variant &one = variants[{observables.begin(), observables.end()}];
    one.all = merged_probability(one.all, c.probability);
    if (!is_part(model.components, k))
      one.unsplit = merged_probability(one.unsplit, c.probability);
    if (one.first == nullptr)
      one.first = &c;
  }
  double max_all = 0;
  for (const auto &[observables, one] : variants)
    max_all = std::max(max_all, one.all);
  const auto likeliest = [&variants](double least) -> const variant & { // unsplit, of those with as much in all
    const auto of = [least](const auto &one) { return one.second.all >= least ? one.second.unsplit : -1; };
    return std::ranges::max_element(variants, {}, of)->second;
  };
  const variant &taken = likeliest(max_all * kAlmost);
  const variant *right = &likeliest(0);
  if (right->unsplit == 0 && variants.size() > 1) // only components, which differ
    right = &std::ranges::find_if(variants, [&](const auto &one) { return &one.second != &taken; })->second;
  else if (taken.unsplit >= right->unsplit * kAlmost)
    return {};
  return reason("line " + std::to_string(taken.first->line) + ": the component " + name_of(model, *taken.first) +
                " contradicts line " + std::to_string(right->first->line) + ", which has " +
                name_of(model, *right->first) +
                ": a decoder that takes components as errors would be wrong; the decoder bp-osd takes errors whole");
}

/// The components with detectors: first those whose lowest detector is 0, then 1, ..., each in the order of the model.
struct by_lowest_detector {
  explicit by_lowest_detector(const detector_error_model &model) : first(model.num_detectors + 1) {
    const auto lowest = [&](const dem_component &c) { return model.targets[c.first_target]; };
    for (const dem_component &c : model.components)
      if (c.detectors != 0)
        ++first[lowest(c) + 1];
    for (std::size_t k = 1; k < first.size(); ++k)
      first[k] += first[k - 1];
    order.resize(first.back());
    std::vector<std::size_t> next(first.begin(), first.end() - 1);
    for (std::size_t k = 0; k < model.components.size(); ++k)
      if (model.components[k].detectors != 0)
        order[next[lowest(model.components[k])]++] = k;
  }
  std::vector<std::size_t> first; ///< of each detector, into `order`; one more than detectors
  std::vector<std::size_t> order;
};

expected<> check_components(const detector_error_model &model) {
  const auto &all = model.components;
  if (std::ranges::adjacent_find(all, {}, &dem_component::mechanism) == all.end())
    return {}; // no error is split
  const by_lowest_detector sorted(model);
  std::vector<std::pair<std::uint64_t, std::size_t>> by_detectors;
  std::vector<std::size_t> same;
  for (std::size_t detector = 0; detector < model.num_detectors; ++detector) {
    const auto of_detector =
        std::span(sorted.order).subspan(sorted.first[detector], sorted.first[detector + 1] - sorted.first[detector]);
    // Those of most detectors flip the same observables, mostly none.
    const auto flips_others = [&](std::size_t k) {
      return !std::ranges::equal(model.observables_of(all[k]), model.observables_of(all[of_detector.front()]));
    };
    if (std::ranges::none_of(of_detector, flips_others))
      continue;
    // Components with equal detectors are neighbours in a list that is sorted by a number of the detectors.
    by_detectors.clear();
    for (const std::size_t k : of_detector) {
      std::uint64_t number = 0;
      for (const std::uint64_t target : model.detectors_of(all[k]))
        number = splitmix(number + target + kSplitmixStep);
      by_detectors.emplace_back(number, k);
    }
    std::ranges::sort(by_detectors);
    for (auto begin = by_detectors.begin(), end = begin; begin != by_detectors.end(); begin = end) {
      const dem_component &first = all[begin->second];
      bool differ = false, has_part = false;
      same.clear();
      for (; end != by_detectors.end() && end->first == begin->first; ++end) {
        const dem_component &c = all[end->second];
        if (!std::ranges::equal(model.detectors_of(c), model.detectors_of(first)))
          continue; // by chance they have one number
        same.push_back(end->second);
        differ |= !std::ranges::equal(model.observables_of(c), model.observables_of(first));
        has_part |= is_part(all, end->second);
      }
      if (differ && has_part)
        if (expected<> result = check_group(model, same); result.failed())
          return result;
    }
  }
  return {};
}

} // namespace

expected<detector_error_model> place_observables(detector_error_model model) {
  const auto &parts = model.components;
  const auto has_company = [&parts](std::size_t k) {
    return (k > 0 && parts[k - 1].mechanism == parts[k].mechanism) ||
           (k + 1 < parts.size() && parts[k + 1].mechanism == parts[k].mechanism);
  };
  bool none = true;
  for (std::size_t k = 0; k < parts.size() && none; ++k)
    none = parts[k].detectors != 0 || !has_company(k);
  if (none)
    return model;

  detector_error_model placed{model.num_detectors, model.num_observables, model.num_errors, {}, {}};
  std::vector<std::uint64_t> loose, sum; // observables of components without detectors
  const auto add_mod_2 = [&](std::span<const std::uint64_t> observables) {
    sum.clear();
    std::ranges::set_symmetric_difference(loose, observables, std::back_inserter(sum));
    loose.swap(sum);
  };
  for (std::size_t begin = 0, end = 0; begin < parts.size(); begin = end) {
    loose.clear();
    std::size_t with_detectors = 0;
    for (; end < parts.size() && parts[end].mechanism == parts[begin].mechanism; ++end) {
      with_detectors += parts[end].detectors != 0;
      if (parts[end].detectors == 0)
        add_mod_2(model.observables_of(parts[end]));
    }
    if (with_detectors > 1 && !loose.empty())
      return reason("line " + std::to_string(parts[begin].line) + ": L" + std::to_string(loose.front()) +
                    " is in a component without detectors, and the error has " + std::to_string(with_detectors) +
                    " others: it belongs to all of them together; the decoder bp-osd takes such models");
    const auto add = [&](const dem_component &like, std::span<const std::uint64_t> detectors) {
      placed.add(like, detectors, loose);
      loose.clear();
    };
    for (std::size_t k = begin; k < end; ++k)
      if (parts[k].detectors != 0) {
        add_mod_2(model.observables_of(parts[k]));
        add(parts[k], model.detectors_of(parts[k]));
      }
    if (with_detectors == 0 && !loose.empty())
      add(parts[begin], {});
  }
  return placed;
}

expected<detector_error_model> component_errors(detector_error_model model) {
  auto placed = place_observables(std::move(model));
  if (placed.failed())
    return placed;
  if (expected<> result = check_components(*placed); result.failed())
    return result.reason();
  return placed;
}

} // namespace cudaq::qec::realtime
