// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/stream/stream_heralds.h"

#include "lib/qec/decoding/splitmix.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

bool are_equal(const heralded_error &a, const heralded_error &b) {
  return a.error == b.error && a.herald == b.herald && a.probability == b.probability;
}

} // namespace

expected<stream_heralds> stream_heralds::make(const herald_list &list, const repeating_model &model) {
  const std::uint64_t repetitions = model.repetitions(), tail = 1 + repetitions;
  stream_heralds made;
  made.head_errors_ = model.head_errors();
  made.body_errors_ = model.body_errors();
  made.head_detectors_ = model.head_detectors();
  made.body_detectors_ = model.body_detectors();
  std::vector<heralded_error> repetition; // that is read now
  std::uint64_t current = 0;              // its part
  const auto go_on_to = [&](std::uint64_t part) -> expected<> {
    for (; current < part; ++current) {
      if (current == 1)
        made.body_ = repetition;
      if (current != 0 && !std::ranges::equal(repetition, made.body_, are_equal))
        return reason("the heralds of repetition " + std::to_string(current) +
                      " of the loop are not those of the first one");
      repetition.clear();
    }
    return {};
  };
  for (std::uint64_t detector = 0; detector < list.meaning.size(); ++detector) {
    const model_place of_herald = place_in_model(detector, made.head_detectors_, made.body_detectors_, repetitions);
    if (const expected<> result = go_on_to(of_herald.part); result.failed())
      return result.reason();
    if ((list.meaning[detector] & herald_list::kHerald) == 0)
      continue;
    if (list.detector.size() != list.meaning.size())
      return reason("the heralds are no detectors of the model, so the rounds of a stream would not have them; python "
                    "-m cudaq_realtime.heralds --fold_loops writes a model for streams");
    for (const error_probability &one : list.errors_of(list.meaning[detector] & ~herald_list::kHerald)) {
      const model_place of_error = place_in_model(one.error, made.head_errors_, made.body_errors_, repetitions);
      if (of_error.part != of_herald.part)
        return reason("herald " + std::to_string(detector) + " lists error " + std::to_string(one.error) +
                      ", and only one of them is in " +
                      (of_herald.part == 0      ? "the head"
                       : of_herald.part == tail ? "the tail"
                                                : "repetition " + std::to_string(of_herald.part) + " of the loop") +
                      "; accepted: both in the same part");
      (of_herald.part == 0      ? made.head_
       : of_herald.part == tail ? made.tail_
                                : repetition)
          .push_back({of_error.within, of_herald.within, one.probability});
    }
  }
  if (const expected<> result = go_on_to(tail); result.failed()) // a tail without detectors
    return result.reason();
  if (const expected<> result = made.find_rounds_before(model); result.failed())
    return result.reason();
  return made;
}

std::vector<heralded_error> stream_heralds::unrolled(std::uint64_t repetitions) const {
  std::vector<heralded_error> all;
  all.reserve(head_.size() + static_cast<std::size_t>(repetitions) * body_.size() + tail_.size());
  std::uint64_t error = 0, detector = 0;
  const auto add = [&](const std::vector<heralded_error> &part) {
    for (const heralded_error &one : part)
      all.push_back({error + one.error, detector + one.herald, one.probability});
  };
  add(head_);
  error = head_errors_;
  detector = head_detectors_;
  for (std::uint64_t k = 0; k < repetitions; ++k) {
    add(body_);
    error += body_errors_;
    detector += body_detectors_;
  }
  add(tail_);
  std::ranges::sort(all, {}, &heralded_error::error);
  return all;
}

std::uint64_t stream_heralds::digest() const noexcept {
  std::uint64_t state = 0;
  for (const auto *const part : {&head_, &body_, &tail_}) {
    state = empty() ? 0 : splitmix(state + part->size() + kSplitmixStep);
    for (const heralded_error &one : *part)
      for (const std::uint64_t word : {one.error, one.herald, std::bit_cast<std::uint64_t>(one.probability)})
        state = splitmix(state + word + kSplitmixStep);
  }
  return state;
}

expected<> stream_heralds::find_rounds_before(const repeating_model &model) {
  constexpr std::uint64_t kFew = 4; // errors reach into the neighbours of their repetition
  const auto few = model.unrolled(kFew);
  if (few.failed())
    return few.reason();
  const std::vector<std::uint64_t> round = model.rounds(kFew);
  const std::vector<heralded_error> all = unrolled(kFew);
  for (const dem_component &c : few->components) {
    const auto of_error = std::ranges::lower_bound(all, std::uint64_t{c.mechanism}, {}, &heralded_error::error);
    if (of_error == all.end() || of_error->error != c.mechanism)
      continue;
    for (const std::uint64_t detector : few->detectors_of(c))
      if (detector < round.size() && round[detector] > round[of_error->herald])
        rounds_before_ = std::max(rounds_before_, round[detector] - round[of_error->herald]);
  }
  return {};
}

} // namespace cudaq::qec::realtime
