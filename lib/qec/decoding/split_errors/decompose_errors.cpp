// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/split_errors/decompose_errors.h"

#include "lib/qec/decoding/split_errors/joined_sets.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

using index_list = std::vector<std::uint64_t>;
constexpr std::uint64_t kBoundary = UINT64_MAX; ///< in the place of a second detector

/// Errors with the same detectors: observables, and the probability that an odd number of them happens.
using variants = std::map<index_list, double>;

/// A model of a code has one or two. More than this many, or larger ones, are not searched: a text of no code must not
/// take hours.
constexpr std::size_t kMaxVariants = 4, kMaxObservables = 64;

index_list sum_mod_2(const index_list &a, const index_list &b) {
  index_list sum;
  std::ranges::set_symmetric_difference(a, b, std::back_inserter(sum));
  return sum;
}

class decomposer {
public:
  struct edge {
    std::uint64_t first, second;
    const index_list *observables;
  };

  explicit decomposer(const detector_error_model &model) : errors_at_(model.num_detectors) {
    for (const dem_component &c : model.components) {
      if (c.detectors != 1 && c.detectors != 2)
        continue;
      const auto detectors = model.detectors_of(c), observables = model.observables_of(c);
      double &p = errors_at_[detectors.front()][c.detectors == 2 ? detectors.back() : kBoundary]
                            [index_list(observables.begin(), observables.end())];
      p = merged_probability(p, c.probability);
    }
    for (const dem_component &c : model.components)
      if (c.detectors > 2 && c.detectors <= 2 * kMaxParts)
        note_edges_in(model.detectors_of(c));
    find_parts();
  }

  /// The errors that a component is split into; empty: it stays as it is.
  const std::vector<edge> &split(std::span<const std::uint64_t> detectors, std::span<const std::uint64_t> observables) {
    chosen_.clear();
    best_.clear();
    best_probability_ = 0;
    if (group(detectors) && ends_.size() > 1)
      choose({observables.begin(), observables.end()}, 1);
    return best_;
  }

private:
  /// Components with detectors of more parts are not split.
  static constexpr std::size_t kMaxParts = 4;

  /// Notes the errors whose two detectors a larger error has.
  void note_edges_in(std::span<const std::uint64_t> detectors) {
    for (std::size_t i = 0; i < detectors.size(); ++i)
      for (std::size_t j = i + 1; j < detectors.size(); ++j)
        if (errors_at_[detectors[i]].contains(detectors[j]))
          in_larger_.emplace(detectors[i], detectors[j]);
  }

  const variants *find(std::uint64_t first, std::uint64_t second) const {
    const auto found = errors_at_[first].find(second);
    return found != errors_at_[first].end() && found->second.size() <= kMaxVariants ? &found->second : nullptr;
  }

  /// Whether an error with these two detectors is the sum of two errors with one.
  bool is_sum(std::uint64_t first, std::uint64_t second, const index_list &observables) const {
    const variants *const at_first = find(first, kBoundary), *const at_second = find(second, kBoundary);
    return at_first != nullptr && at_second != nullptr && std::ranges::any_of(*at_first, [&](const auto &one) {
             return at_second->contains(sum_mod_2(one.first, observables));
           });
  }

  /// A sum of two errors with one detector, of which a larger error has both: a Y error. Without the second condition
  /// a measurement error of a check at a boundary would be one, too.
  bool is_between_parts(std::uint64_t first, std::uint64_t second, const variants &errors) const {
    return in_larger_.contains({first, second}) &&
           std::ranges::all_of(errors, [&](const auto &error) { return is_sum(first, second, error.first); });
  }

  void find_parts() {
    joined_sets joined(errors_at_.size());
    for (std::uint64_t first = 0; first < errors_at_.size(); ++first)
      for (const auto &[second, errors] : errors_at_[first])
        if (second != kBoundary && !is_between_parts(first, second, errors))
          joined.join(first, second);
    part_of_ = joined.numbers();
  }

  /// Sorts detectors, ascending, into ends_. False: there are three of one part, or too many parts.
  bool group(std::span<const std::uint64_t> detectors) {
    ends_.clear();
    for (const std::uint64_t detector : detectors) {
      const auto same =
          std::ranges::find_if(ends_, [&](const auto &ends) { return part_of_[ends.first] == part_of_[detector]; });
      if (same == ends_.end() && ends_.size() < kMaxParts)
        ends_.emplace_back(detector, kBoundary);
      else if (same != ends_.end() && same->second == kBoundary)
        same->second = detector;
      else
        return false;
    }
    return true;
  }

  /// Chooses an error for each of ends_ after the chosen ones, which have this probability together.
  void choose(const index_list &observables, double probability) {
    const auto [first, second] = ends_[chosen_.size()];
    const variants *const errors = find(first, second);
    if (errors == nullptr)
      return;
    if (chosen_.size() + 1 == ends_.size()) {
      const auto last = errors->find(observables);
      if (last != errors->end() && probability * last->second > best_probability_) {
        best_ = chosen_;
        best_.push_back({first, second, &last->first});
        best_probability_ = probability * last->second;
      }
      return;
    }
    for (const auto &[flipped, p] : *errors) {
      if (flipped.size() > kMaxObservables)
        continue;
      chosen_.push_back({first, second, &flipped});
      choose(sum_mod_2(observables, flipped), probability * p);
      chosen_.pop_back();
    }
  }

  std::vector<std::map<std::uint64_t, variants>> errors_at_; ///< by the lower detector, then the higher
  std::set<std::pair<std::uint64_t, std::uint64_t>> in_larger_;
  std::vector<std::uint32_t> part_of_;                        ///< of each detector
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ends_; ///< of a component, in each part
  std::vector<edge> chosen_, best_;
  double best_probability_ = 0;
};

} // namespace

detector_error_model decompose_errors(detector_error_model model) {
  if (std::ranges::none_of(model.components, [](const dem_component &c) { return c.detectors > 2; }))
    return model;
  decomposer known(model);
  detector_error_model made{model.num_detectors, model.num_observables, model.num_errors, {}, {}};
  made.components.reserve(2 * model.components.size());
  made.targets.reserve(model.targets.size());
  for (const dem_component &c : model.components) {
    const auto detectors = model.detectors_of(c), observables = model.observables_of(c);
    const auto &edges = known.split(detectors, observables);
    if (edges.empty() || made.targets.size() > dem_limits{}.targets) { // an edge has its observables in each error
      made.add(c, detectors, observables);
      continue;
    }
    for (const auto &[first, second, flipped] : edges) {
      const std::uint64_t ends[] = {first, second};
      made.add(c, std::span(ends).first(second == kBoundary ? 1 : 2), *flipped);
    }
  }
  return made;
}

} // namespace cudaq::qec::realtime
