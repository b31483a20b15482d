// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/confidence/confident_decoder.h"

#include "lib/qec/decoders/confidence/forced_observable.h"
#include "lib/qec/decoding/split_errors/needed_events.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cudaq::qec::realtime {
namespace {

/// The decoder of the model in which one observable is a detector; none: the events alone decide the observable.
struct forced_decoder {
  std::unique_ptr<decoder> with;
  std::vector<std::uint8_t> shift; ///< forced_observable::shift
  std::optional<both_values> few;  ///< for the probabilities of the model
};

class confident_decoder final : public decoder {
public:
  confident_decoder(std::unique_ptr<decoder> first, std::vector<forced_decoder> forced,
                    std::optional<needed_events> needed)
      : decoder(first->num_detectors(), first->num_observables()), first_(std::move(first)), forced_(std::move(forced)),
        needed_(std::move(needed)), ignored_(first_->observable_bytes()) {
    forced_events_.reserve(static_cast<std::size_t>(num_detectors()) + 1);
  }

  const char *name() const noexcept override { return first_->name(); }
  bool gives_edges() const noexcept override { return first_->gives_edges(); }
  std::uint64_t num_errors() const noexcept override { return first_->num_errors(); }
  bool obeys_deadline() const noexcept override { return first_->obeys_deadline(); }
  const char *fault() const noexcept override { return failed_ != nullptr ? failed_->fault() : ""; }
  const char *refuses_probabilities() const noexcept override { return first_->refuses_probabilities(); }
  const char *refuses_gaps() const noexcept override { return nullptr; }
  double smallest_probability() const noexcept override { return first_->smallest_probability(); }

protected:
  decode_status decode_checked(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables,
                               decode_details *details) noexcept override {
    failed_ = first_.get();
    if (details == nullptr || details->gaps.empty())
      return first_->decode(events, observables, given_, details);
    const std::span<double> gaps = std::exchange(details->gaps, {});
    const decode_status status = decode_with_gaps(events, observables, *details, gaps);
    details->gaps = gaps;
    return status;
  }
  /// The decoders check it.
  decode_status replace_probabilities(shot_probabilities probabilities) noexcept override {
    given_ = probabilities;
    return decode_status::ok;
  }
  void restore_probabilities() noexcept override { given_ = {}; }

private:
  /// `details`: without gaps.
  decode_status decode_with_gaps(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables,
                                 decode_details &details, std::span<double> gaps) noexcept {
    const std::vector<std::uint64_t> *const needed = needed_ ? needed_->of(events) : &events;
    if (needed == nullptr)
      return decode_status::no_solution;
    if (double least = 0; details.edges.empty() && decide(*needed, observables, gaps, least)) {
      if (!needed_)
        details.weight = least;
      return decode_status::ok;
    }
    const bool has_all = !needed_ || !details.edges.empty();
    decode_details weighed{.control = details.control};
    decode_status status = decode_status::ok;
    if (has_all)
      status = first_->decode(events, observables, given_, &details);
    if (needed_ && status == decode_status::ok) // with edges, only for the weight of these events
      status = first_->decode(*needed, has_all ? std::span(ignored_) : observables, given_, &weighed);
    if (status != decode_status::ok)
      return status;
    const double weight = needed_ ? weighed.weight : details.weight;
    for (std::size_t k = 0; k < forced_.size(); ++k) {
      const bool is_flipped = (observables[k / 8] >> (k % 8) & 1) != 0;
      status = find_gap(forced_[k], *needed, is_flipped, weight, details.control, gaps[k]);
      if (status != decode_status::ok)
        return status;
    }
    return decode_status::ok;
  }

  /// Answer, its weight and gaps without a decoder, from the least weights of both values of each observable. False:
  /// they do not decide, because two are nearly equal, or they are not known.
  bool decide(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables, std::span<double> gaps,
              double &weight) noexcept {
    if (!given_.empty())
      return false;
    std::uint64_t flipped = 0;
    bool has_solution = false;
    for (std::size_t k = 0; k < forced_.size(); ++k) {
      forced_decoder &forced = forced_[k];
      bool value = is_shifted(forced, events);
      gaps[k] = std::numeric_limits<double>::infinity();
      if (forced.with != nullptr) {
        std::array<double, 2> weights;
        if (!forced.few || !forced.few->weigh(events, weights) || !forced.few->decides(weights))
          return false;
        has_solution = true;
        weight = std::min(weights[0], weights[1]);
        value ^= weights[1] < weights[0];
        gaps[k] = std::abs(weights[1] - weights[0]);
      }
      flipped |= std::uint64_t{value} << k;
    }
    if (!has_solution)
      return false;
    for (std::size_t byte = 0; byte < observables.size(); ++byte)
      observables[byte] = static_cast<std::uint8_t>(flipped >> (8 * byte));
    failed_ = nullptr;
    return true;
  }

  /// Whether the observable is flipped if its detector does not fire.
  static bool is_shifted(const forced_decoder &forced, const std::vector<std::uint64_t> &events) noexcept {
    bool shifted = false;
    if (!forced.shift.empty())
      for (const std::uint64_t event : events)
        shifted ^= forced.shift[event] != 0;
    return shifted;
  }

  /// `weight`: of the answer, in which the observable is flipped or not.
  decode_status find_gap(forced_decoder &forced, const std::vector<std::uint64_t> &events, bool is_flipped,
                         double weight, const decode_control &control, double &gap) noexcept {
    if (forced.with == nullptr) {
      gap = std::numeric_limits<double>::infinity();
      return decode_status::ok;
    }
    forced_events_.assign(events.begin(), events.end());
    const bool fires = is_flipped == is_shifted(forced, events); // the other value
    if (std::array<double, 2> weights; forced.few && given_.empty() && forced.few->weigh(events, weights)) {
      gap = std::max(weights[fires ? 1 : 0] - weights[fires ? 0 : 1], 0.0);
      return decode_status::ok;
    }
    if (fires)
      forced_events_.push_back(num_detectors());
    decode_details other{.control = control};
    const decode_status status = forced.with->decode(forced_events_, ignored_, given_, &other);
    switch (status) {
    case decode_status::ok:
      gap = std::max(other.weight - weight, 0.0); // NaN stays
      return decode_status::ok;
    case decode_status::no_solution:
      gap = std::numeric_limits<double>::infinity();
      return decode_status::ok;
    case decode_status::not_converged:
    case decode_status::deadline:
    case decode_status::cancelled:
      gap = std::numeric_limits<double>::quiet_NaN(); // the answer is there, and in time
      return decode_status::ok;
    default:
      failed_ = forced.with.get();
      return status;
    }
  }

  const std::unique_ptr<decoder> first_;
  std::vector<forced_decoder> forced_;       ///< of each observable
  std::optional<needed_events> needed_;      ///< if it drops some
  const decoder *failed_ = first_.get();     ///< whose fault() is that of the last decode; null: there was none
  shot_probabilities given_;                 ///< by the caller, in this decode
  std::vector<std::uint64_t> forced_events_; ///< room for all detectors and the new one
  std::vector<std::uint8_t> ignored_;        ///< observables
};

} // namespace

decoder_result make_confident_decoder(std::unique_ptr<decoder> first, const detector_error_model &model,
                                      const decoder_maker &make, const edge_lister &edges) {
  if (model.num_observables > kMaxGaps)
    return {nullptr, "confidence=1: the model has " + std::to_string(model.num_observables) +
                         " observables, and gaps are given for at most " + std::to_string(kMaxGaps)};
  const bool matches = edges != nullptr;
  std::optional<needed_events> needed;
  if (matches)
    needed.emplace(model);
  if (needed && !needed->drops_some())
    needed.reset();
  std::shared_ptr<const event_distances> distances;
  if (matches)
    distances = event_distances::of(static_cast<std::size_t>(model.num_detectors), edges(model),
                                    needed ? needed->dropped() : std::vector<bool>());
  std::vector<forced_decoder> forced;
  for (std::uint64_t observable = 0; observable < model.num_observables; ++observable) {
    const auto failed = [observable](const std::string &why) {
      return decoder_result{nullptr, "confidence=1: L" + std::to_string(observable) + ": " + why};
    };
    expected<forced_observable> with =
        matches ? force_matched_observable(model, observable) : force_observable(model, observable);
    if (with.failed())
      return failed(with.text());
    if (with->is_fixed) {
      forced.push_back({nullptr, std::move(with->shift), std::nullopt});
      continue;
    }
    decoder_result made = make(decoder_model(with->model));
    if (!made)
      return failed(made.error);
    std::optional<both_values> few;
    if (distances != nullptr)
      few = both_values::of(distances, edges(with->model));
    forced.push_back({std::move(made.instance), std::move(with->shift), std::move(few)});
  }
  return {std::make_unique<confident_decoder>(std::move(first), std::move(forced), std::move(needed)), {}};
}

} // namespace cudaq::qec::realtime
