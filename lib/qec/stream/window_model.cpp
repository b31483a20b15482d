// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/stream/window_model.h"

#include "lib/qec/decoding/splitmix.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

using index_list = std::vector<std::uint64_t>;

index_list sum_mod_2(const index_list &a, std::span<const std::uint64_t> b) {
  index_list sum;
  std::ranges::set_symmetric_difference(a, b, std::back_inserter(sum));
  return sum;
}

/// Eight random bits of a detector, the same in every window that is built alike.
std::uint8_t parity_sets(std::uint64_t detector) {
  return static_cast<std::uint8_t>(splitmix((detector + 1) * kSplitmixStep) >> 56);
}

} // namespace

class window_builder {
public:
  window_builder(const window_source &source, window_rounds rounds) : source_(source), rounds_(rounds) {
    const std::vector<std::uint64_t> &round_of = source.round_of_;
    const auto at = [&](std::uint64_t round) {
      return static_cast<std::uint64_t>(std::ranges::lower_bound(round_of, round) - round_of.begin());
    };
    made_.first_detector = at(rounds.begin);
    made_.num_detectors = at(rounds.end) - made_.first_detector;
    made_.num_observables = source.model_.num_observables;
    for (std::uint64_t k = 0; k < made_.num_detectors; ++k)
      made_.parities.push_back(parity_sets(k));
    for (std::uint64_t k = 0; k < made_.num_detectors; ++k)
      made_.is_needed.push_back(flips_observables(made_.first_detector + k) ? 1 : 0);
  }

  window_model run() {
    std::vector<part> parts;
    for (const std::size_t number : errors_near()) {
      parts.clear();
      const auto [begin, end] = source_.errors_[number];
      const std::span all = std::span(source_.model_.components).subspan(begin, end - begin);
      for (const dem_component &c : all) {
        const auto detectors = source_.model_.detectors_of(c), observables = source_.model_.observables_of(c);
        if (source_.form_ != error_form::whole || parts.empty())
          parts.push_back({{detectors.begin(), detectors.end()}, {observables.begin(), observables.end()}});
        else
          parts[0] = {sum_mod_2(parts[0].detectors, detectors), sum_mod_2(parts[0].observables, observables)};
      }
      std::erase_if(parts, [&](part &one) { return !restrict(one); });
      if (!parts.empty())
        errors_.push_back({all.front().probability, all.front().line, all.front().mechanism, parts});
    }
    std::ranges::sort(made_.crossings);
    made_.crossings.erase(std::unique(made_.crossings.begin(), made_.crossings.end()), made_.crossings.end());
    add_errors();
    add_heralds();
    add_readout();
    return std::move(made_);
  }

private:
  struct part {
    index_list detectors, observables; ///< of the window once it is restricted
    bool committed = false;
  };
  struct error {
    double probability;
    std::uint64_t line;
    std::uint32_t number; ///< in the unrolled model
    std::vector<part> parts;
  };

  bool flips_observables(std::uint64_t detector) const {
    return source_.parts_.parts[source_.parts_.part_of[detector]].flips_observables;
  }

  /// The errors that may have a detector in the window, in the order of the text.
  std::vector<std::size_t> errors_near() const {
    const std::uint64_t first = rounds_.begin - std::min(rounds_.begin, source_.reach_);
    const auto at = [&](std::uint64_t round) {
      return source_.by_round_.begin() +
             static_cast<std::ptrdiff_t>(source_.first_errors_[std::min(round, source_.num_rounds())]);
    };
    std::vector<std::size_t> near(at(first), at(rounds_.end));
    std::ranges::sort(near);
    return near;
  }

  /// Leaves what the window sees of a component. False: nothing.
  bool restrict(part &one) {
    if (!one.detectors.empty() && !flips_observables(one.detectors[0]))
      return false;
    const auto round_of = [&](std::uint64_t d) { return source_.round_of_[d]; };
    const bool reaches_back =
        std::ranges::any_of(one.detectors, [&](std::uint64_t d) { return round_of(d) < rounds_.begin; });
    if (reaches_back && !rounds_.open_begin)
      return false;
    const bool reaches_on =
        std::ranges::any_of(one.detectors, [&](std::uint64_t d) { return round_of(d) >= rounds_.end; });
    if (reaches_on && rounds_.closed_end)
      return false;
    one.committed = std::ranges::any_of(one.detectors, [&](std::uint64_t d) {
      return round_of(d) >= rounds_.commit_begin && round_of(d) < rounds_.commit_end;
    });
    std::erase_if(one.detectors,
                  [&](std::uint64_t d) { return round_of(d) < rounds_.begin || round_of(d) >= rounds_.end; });
    if (!one.committed)
      one.observables.clear();
    for (std::uint64_t &d : one.detectors) {
      if (one.committed && (round_of(d) < rounds_.commit_begin || round_of(d) >= rounds_.commit_end))
        made_.crossings.push_back(d - made_.first_detector);
      d -= made_.first_detector;
    }
    return !one.detectors.empty();
  }

  void add_errors() {
    detector_error_model &errors = made_.errors;
    errors.num_detectors = made_.num_detectors;
    errors.num_observables = made_.num_observables + made_.crossings.size() + window_model::kParities;
    for (const error &one : errors_) {
      const auto number = static_cast<std::uint32_t>(errors.num_errors++);
      for (const part &p : one.parts)
        errors.add({one.probability, one.line, 0, 0, 0, number}, p.detectors, flipped_by(p));
    }
  }

  /// Of the errors of the window those that have a herald, by herald.
  void add_heralds() {
    std::vector<std::pair<std::uint64_t, error_probability>> found; // with the herald
    auto at = source_.heralded_.begin();
    for (std::size_t k = 0; k < errors_.size(); ++k) { // by number, as the list
      at = std::lower_bound(at, source_.heralded_.end(), errors_[k].number,
                            [](const heralded_error &one, std::uint64_t number) { return one.error < number; });
      if (at != source_.heralded_.end() && at->error == errors_[k].number)
        found.emplace_back(at->herald, error_probability{k, at->probability});
    }
    std::ranges::stable_sort(found, {}, &decltype(found)::value_type::first);
    for (const auto &[herald, listed] : found) {
      if (herald >= made_.first_detector + made_.num_detectors)
        break; // of those after the window nothing is known when it is decoded
      const std::int64_t detector = static_cast<std::int64_t>(herald) - static_cast<std::int64_t>(made_.first_detector);
      if (made_.heralds.empty() || made_.heralds.back().detector != detector)
        made_.heralds.push_back({detector, made_.herald_errors.size(), made_.herald_errors.size()});
      made_.herald_errors.push_back(listed);
      ++made_.heralds.back().end;
    }
  }

  /// Of the errors of the window those whose probability a readout says.
  void add_readout() {
    const std::vector<read_errors::entry> &all = source_.read_.errors;
    auto at = all.begin();
    for (std::size_t k = 0; k < errors_.size(); ++k) { // by number, as the list
      at = std::ranges::lower_bound(at, all.end(), std::uint64_t{errors_[k].number}, {}, &read_errors::entry::error);
      if (at != all.end() && at->error == errors_[k].number)
        made_.read.add(source_.read_, static_cast<std::size_t>(at - all.begin()), k);
    }
  }

  /// The observables of the window, ascending.
  index_list flipped_by(const part &one) const {
    std::uint8_t parity = 0;
    for (const std::uint64_t d : one.detectors)
      parity ^= made_.parities[d];
    index_list flipped = one.observables;
    std::uint64_t next = made_.num_observables;
    if (one.committed)
      for (const std::uint64_t d : one.detectors)
        if (const auto at = std::ranges::lower_bound(made_.crossings, d); at != made_.crossings.end() && *at == d)
          flipped.push_back(next + static_cast<std::uint64_t>(at - made_.crossings.begin()));
    next += made_.crossings.size();
    for (std::uint64_t j = 0; j < window_model::kParities; ++j)
      if ((parity >> j & 1) != 0)
        flipped.push_back(next + j);
    return flipped;
  }

  const window_source &source_;
  const window_rounds rounds_;
  window_model made_;
  std::vector<error> errors_;
};

window_source::window_source(detector_error_model model, std::vector<std::uint64_t> round_of_detector, error_form form,
                             std::vector<heralded_error> heralded, read_errors read)
    : model_(std::move(model)), round_of_(std::move(round_of_detector)), form_(form), heralded_(std::move(heralded)),
      read_(std::move(read)), parts_(model_, form == error_form::components) {
  const auto &all = model_.components;
  first_errors_.resize((round_of_.empty() ? 0 : round_of_.back() + 1) + 1);
  std::vector<std::uint64_t> first_rounds; // of the errors that have detectors
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    std::uint64_t first = UINT64_MAX, last = 0;
    for (; end < all.size() && all[end].mechanism == all[begin].mechanism; ++end)
      for (const std::uint64_t d : model_.detectors_of(all[end])) {
        first = std::min(first, round_of_[d]);
        last = std::max(last, round_of_[d]);
      }
    if (first == UINT64_MAX)
      continue;
    reach_ = std::max(reach_, last - first);
    errors_.push_back({begin, end});
    first_rounds.push_back(first);
    ++first_errors_[first + 1];
  }
  std::partial_sum(first_errors_.begin(), first_errors_.end(), first_errors_.begin());
  by_round_.resize(errors_.size());
  std::vector<std::size_t> next = first_errors_;
  for (std::size_t k = 0; k < errors_.size(); ++k)
    by_round_[next[first_rounds[k]]++] = k;
}

window_model window_source::window(window_rounds rounds) const { return window_builder(*this, rounds).run(); }

} // namespace cudaq::qec::realtime
