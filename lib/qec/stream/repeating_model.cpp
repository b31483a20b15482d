// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/stream/repeating_model.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

namespace cudaq::qec::realtime {
namespace {

using namespace dem_text;

/// The repetitions with which rounds and reach are found: the errors of one repetition name detectors of its
/// neighbours.
constexpr std::uint64_t kFew = 4;

std::vector<std::uint64_t> ends_of(const std::vector<std::uint64_t> &sizes) {
  std::vector<std::uint64_t> ends{0};
  for (const std::uint64_t size : sizes)
    ends.push_back(ends.back() + size);
  return ends;
}

/// The outer loop with the most repetitions; SIZE_MAX: none.
std::size_t longest_loop(const program &in) {
  std::size_t found = SIZE_MAX;
  for (std::size_t at = 0; at < in.instructions.size(); ++at) {
    if (in.instructions[at].what != kind::repeat)
      continue;
    if (found == SIZE_MAX || in.instructions[at].number > in.instructions[found].number)
      found = at;
    at = in.instructions[at].other_end;
  }
  return found;
}

/// The sizes of the rounds of detectors [begin, end).
expected<std::vector<std::uint64_t>> cut(const unrolled_detectors &all, std::uint64_t begin, std::uint64_t end,
                                         round_rule rule, const std::string &where) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t d = begin; d < end; ++d) {
    const bool by_index = rule.detectors != 0;
    if (!by_index && std::isnan(all.time[d]))
      return reason("D" + std::to_string(d) + " of the " + where +
                    " has no coordinate: its round is not known; rounds=index:N counts N detectors a round");
    if (!by_index && d != begin && all.time[d] < all.time[d - 1])
      return reason("D" + std::to_string(d) + " of the " + where +
                    " has an earlier round than the detector before it: a stream needs the detectors in the order of "
                    "rounds; if that coordinate is not the round: rounds=index:N counts N detectors a round");
    const bool is_new = d == begin || (by_index ? (d - begin) % rule.detectors == 0 : all.time[d] != all.time[d - 1]);
    if (is_new)
      sizes.push_back(0);
    ++sizes.back();
  }
  if (rule.detectors != 0 && !sizes.empty() && where != "tail" && sizes.back() != rule.detectors)
    return reason("the " + where + " has " + std::to_string(end - begin) + " detectors, which are no whole rounds of " +
                  std::to_string(rule.detectors));
  return sizes;
}

} // namespace

expected<round_rule> round_rule::parse(std::string_view text) {
  constexpr std::string_view kIndex = "index:";
  round_rule rule;
  if (text == "time")
    return rule;
  if (text.starts_with(kIndex)) {
    const std::string_view digits = text.substr(kIndex.size());
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), rule.detectors);
    if (code == std::errc{} && end == digits.data() + digits.size() && rule.detectors != 0)
      return rule;
  }
  return reason("rounds=" + std::string(text) + ": expected time, or index:N with N detectors a round");
}

expected<repeating_model> repeating_model::of(const decoder_model &model, round_rule rule, const dem_limits &limits) {
  auto instructions = model.instructions();
  if (instructions.failed())
    return instructions.reason();
  return or_reason([&]() -> expected<repeating_model> {
    repeating_model made;
    made.program_ = std::move(*instructions);
    made.limits_ = limits;
    if (made.program_->instructions.empty())
      return reason("the model has no detectors");
    made.loop_ = longest_loop(*made.program_);
    if (made.loop_ == SIZE_MAX)
      return reason("the model has no loop (repeat): it describes an experiment of one length, which is decoded as a "
                    "shot; Stim writes the loop of enough rounds only, with --fold_loops");
    if (expected<> result = made.find_rounds(rule); result.failed())
      return result.reason();
    if (expected<> result = made.find_reach(); result.failed())
      return result.reason();
    return made;
  });
}

expected<> repeating_model::find_rounds(round_rule rule) {
  const std::string line = "line " + std::to_string(program_->instructions[loop_].line) + ": ";
  unrolled_detectors few, more;
  const detector_error_model of_few = unroll(*program_, limits_, loop_, kFew, &few);
  const detector_error_model of_more = unroll(*program_, limits_, loop_, kFew + 1, &more);
  const std::uint64_t detectors = of_few.num_detectors, period = of_more.num_detectors - detectors;
  head_errors_ = few.errors_before;
  body_errors_ = of_more.num_errors - of_few.num_errors;
  if (period == 0)
    return reason(line + "the loop moves no detectors (shift_detectors): all its repetitions are one round");
  // Where detectors are declared, the first declaration in the loop is that of the first round of the body; else the
  // shift says where the loop begins.
  std::uint64_t head = few.declared_before, tail = few.declared_after;
  if (tail - head != kFew * period) {
    head = rule.detectors != 0 ? (few.shift_before + rule.detectors - 1) / rule.detectors * rule.detectors : 0;
    tail = head + kFew * period;
  }
  if (tail > detectors || (rule.detectors == 0 && tail - head != few.declared_after - few.declared_before))
    return reason(line + "the loop does not declare the " + std::to_string(period) +
                  " detectors of each repetition (detector); rounds=index:N counts N detectors a round");
  auto sizes = cut(few, 0, head, rule, "head");
  if (sizes.failed())
    return sizes.reason();
  head_ = std::move(*sizes);
  sizes = cut(few, head, head + period, rule, "loop");
  if (sizes.failed())
    return sizes.reason();
  body_ = std::move(*sizes);
  sizes = cut(few, tail, detectors, rule, "tail");
  if (sizes.failed())
    return sizes.reason();
  tail_ = std::move(*sizes);
  head_ends_ = ends_of(head_);
  body_ends_ = ends_of(body_);
  tail_ends_ = ends_of(tail_);
  return {};
}

expected<> repeating_model::find_reach() {
  const detector_error_model model = unroll(*program_, limits_, loop_, kFew);
  const std::vector<std::uint64_t> round = rounds(kFew);
  const auto &all = model.components;
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    std::uint64_t first = UINT64_MAX, last = 0;
    for (; end < all.size() && all[end].mechanism == all[begin].mechanism; ++end)
      for (const std::uint64_t d : model.detectors_of(all[end])) {
        if (d >= round.size())
          return reason("line " + std::to_string(all[end].line) + ": D" + std::to_string(d) +
                        " lies after all repetitions");
        first = std::min(first, round[d]);
        last = std::max(last, round[d]);
      }
    if (first != UINT64_MAX)
      reach_ = std::max(reach_, last - first + 1);
  }
  return {};
}

expected<detector_error_model> repeating_model::unrolled(std::uint64_t repetitions,
                                                         dem_text::unrolled_detectors *notes) const {
  try {
    return unroll(*program_, limits_, loop_, repetitions, notes);
  } catch (const dem_error &failure) {
    return reason(failure.what());
  }
}

std::uint64_t repeating_model::first_detector(std::uint64_t round) const noexcept {
  if (round <= head_.size())
    return head_ends_[round];
  const std::uint64_t in_body = round - head_.size();
  return head_ends_.back() + in_body / body_.size() * body_ends_.back() + body_ends_[in_body % body_.size()];
}

std::uint64_t repeating_model::round_of(std::uint64_t detector) const noexcept {
  const auto whole = [](const std::vector<std::uint64_t> &ends, std::uint64_t at) {
    return static_cast<std::uint64_t>(std::ranges::upper_bound(ends, at) - ends.begin()) - 1;
  };
  if (detector < head_ends_.back())
    return whole(head_ends_, detector);
  const std::uint64_t in_body = detector - head_ends_.back();
  return head_.size() + in_body / body_ends_.back() * body_.size() + whole(body_ends_, in_body % body_ends_.back());
}

std::vector<std::uint64_t> repeating_model::rounds(std::uint64_t repetitions) const {
  std::vector<std::uint64_t> of_detector;
  std::uint64_t round = 0;
  const auto add = [&](const std::vector<std::uint64_t> &sizes) {
    for (const std::uint64_t size : sizes)
      of_detector.insert(of_detector.end(), size, round++);
  };
  add(head_);
  for (std::uint64_t k = 0; k < repetitions; ++k)
    add(body_);
  add(tail_);
  return of_detector;
}

} // namespace cudaq::qec::realtime
