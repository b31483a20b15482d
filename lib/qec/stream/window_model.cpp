// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/stream/window_model.h"

#include "lib/qec/decoding/connected_parts.h"
#include "lib/qec/decoding/splitmix.h"

#include <algorithm>
#include <charconv>
#include <iterator>

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

class builder {
public:
  builder(const detector_error_model &model, std::span<const std::uint64_t> round_of, window_rounds rounds,
          error_form form)
      : model_(model), round_of_(round_of), rounds_(rounds), form_(form),
        parts_(model, form == error_form::components) {
    const auto at = [&](std::uint64_t round) {
      return static_cast<std::uint64_t>(std::ranges::lower_bound(round_of, round) - round_of.begin());
    };
    made_.first_detector = at(rounds.begin);
    made_.num_detectors = at(rounds.end) - made_.first_detector;
    made_.num_observables = model.num_observables;
    for (std::uint64_t k = 0; k < made_.num_detectors; ++k)
      made_.parities.push_back(parity_sets(k));
    for (std::uint64_t k = 0; k < made_.num_detectors; ++k)
      made_.is_needed.push_back(parts_.parts[parts_.part_of[made_.first_detector + k]].flips_observables ? 1 : 0);
  }

  window_model run() {
    std::vector<part> parts;
    const auto &all = model_.components;
    for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
      parts.clear();
      for (; end < all.size() && all[end].mechanism == all[begin].mechanism; ++end) {
        const auto detectors = model_.detectors_of(all[end]), observables = model_.observables_of(all[end]);
        if (form_ != error_form::whole || parts.empty())
          parts.push_back({{detectors.begin(), detectors.end()}, {observables.begin(), observables.end()}});
        else
          parts[0] = {sum_mod_2(parts[0].detectors, detectors), sum_mod_2(parts[0].observables, observables)};
      }
      std::erase_if(parts, [&](part &one) { return !restrict(one); });
      if (!parts.empty())
        errors_.push_back({all[begin].probability, parts});
    }
    std::ranges::sort(made_.crossings);
    made_.crossings.erase(std::unique(made_.crossings.begin(), made_.crossings.end()), made_.crossings.end());
    write();
    return std::move(made_);
  }

private:
  struct part {
    index_list detectors, observables; ///< of the window once it is restricted
    bool committed = false;
  };
  struct error {
    double probability;
    std::vector<part> parts;
  };

  /// Leaves what the window sees of a component. False: nothing.
  bool restrict(part &one) {
    if (!one.detectors.empty() && !parts_.parts[parts_.part_of[one.detectors[0]]].flips_observables)
      return false;
    const bool reaches_back =
        std::ranges::any_of(one.detectors, [&](std::uint64_t d) { return round_of_[d] < rounds_.begin; });
    if (reaches_back && !rounds_.open_begin)
      return false;
    one.committed = std::ranges::any_of(one.detectors, [&](std::uint64_t d) {
      return round_of_[d] >= rounds_.commit_begin && round_of_[d] < rounds_.commit_end;
    });
    std::erase_if(one.detectors,
                  [&](std::uint64_t d) { return round_of_[d] < rounds_.begin || round_of_[d] >= rounds_.end; });
    if (!one.committed)
      one.observables.clear();
    for (std::uint64_t &d : one.detectors) {
      if (one.committed && (round_of_[d] < rounds_.commit_begin || round_of_[d] >= rounds_.commit_end))
        made_.crossings.push_back(d - made_.first_detector);
      d -= made_.first_detector;
    }
    return !one.detectors.empty();
  }

  void write() {
    for (const error &one : errors_) {
      char digits[32];
      made_.text.append("error(").append(digits, std::to_chars(digits, digits + sizeof digits, one.probability).ptr) +=
          ')';
      for (std::size_t k = 0; k < one.parts.size(); ++k) {
        if (k != 0)
          made_.text += " ^";
        write(one.parts[k]);
      }
      made_.text += '\n';
    }
    // All detectors and observables of the window, also those that no error flips.
    if (made_.num_detectors != 0)
      made_.text += "detector D" + std::to_string(made_.num_detectors - 1) + '\n';
    made_.text += "logical_observable L" +
                  std::to_string(made_.num_observables + made_.crossings.size() + window_model::kParities - 1) + '\n';
  }

  void write(const part &one) {
    std::uint8_t parity = 0;
    for (const std::uint64_t d : one.detectors) {
      made_.text += " D" + std::to_string(d);
      parity ^= made_.parities[d];
    }
    const auto flip = [&](std::uint64_t observable) { made_.text += " L" + std::to_string(observable); };
    for (const std::uint64_t observable : one.observables)
      flip(observable);
    std::uint64_t next = made_.num_observables;
    if (one.committed)
      for (const std::uint64_t d : one.detectors)
        if (const auto at = std::ranges::lower_bound(made_.crossings, d); at != made_.crossings.end() && *at == d)
          flip(next + static_cast<std::uint64_t>(at - made_.crossings.begin()));
    next += made_.crossings.size();
    for (std::uint64_t j = 0; j < window_model::kParities; ++j)
      if ((parity >> j & 1) != 0)
        flip(next + j);
  }

  const detector_error_model &model_;
  const std::span<const std::uint64_t> round_of_;
  const window_rounds rounds_;
  const error_form form_;
  const connected_parts parts_;
  window_model made_;
  std::vector<error> errors_;
};

} // namespace

window_model make_window_model(const detector_error_model &model, std::span<const std::uint64_t> round_of_detector,
                               window_rounds rounds, error_form form) {
  return builder(model, round_of_detector, rounds, form).run();
}

} // namespace cudaq::qec::realtime
