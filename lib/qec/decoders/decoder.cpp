// SPDX-License-Identifier: Apache-2.0
#include "cudaq/qec/decoding/decoder.h"

#include "cudaq/realtime/detail/base/flag_word.h"
#include "lib/qec/decoders/stop_check.h"
#include "lib/qec/decoding/event_bits.h"

#include <algorithm>
#include <cmath>

namespace cudaq::qec::realtime {

decoder::decoder(std::uint64_t num_detectors, std::uint64_t num_observables)
    : num_detectors_(num_detectors), num_observables_(num_observables) {
  events_.reserve(static_cast<std::size_t>(num_detectors));
}

decoder::~decoder() = default;

bool decoder::gives_edges() const noexcept { return false; }
std::uint64_t decoder::num_errors() const noexcept { return 0; }
std::vector<std::pair<std::string, std::uint64_t>> decoder::wins() const { return {}; }
std::uint64_t decoder::member_faults() const noexcept { return 0; }
bool decoder::obeys_deadline() const noexcept { return false; }
const char *decoder::fault() const noexcept { return ""; }
const char *decoder::refuses_probabilities() const noexcept {
  return "this decoder does not take probabilities of a shot; pymatching, relay-bp and bp-osd do";
}
double decoder::smallest_probability() const noexcept { return 0; }
const char *decoder::refuses_gaps() const noexcept {
  return "this decoder gives no gaps; pymatching, relay-bp and bp-osd do, with the setting confidence=1";
}
decode_status decoder::replace_probabilities(shot_probabilities) noexcept { return decode_status::not_supported; }
void decoder::restore_probabilities() noexcept {}

void cancel_decode(std::uint32_t &word) noexcept { cudaq::realtime::detail::store_relaxed(word, 1U); }

decode_status decoder::take_events(std::span<const std::uint64_t> events) noexcept {
  // All indices are checked before a matcher gets them: a bad index inside PyMatching would spoil every later decode.
  // More events than detectors contain a duplicate and would make events_ grow. The first check that fails decides
  // the error.
  events_.clear();
  bool ascending = true;
  for (const std::uint64_t event : events) {
    if (event >= num_detectors_)
      return decode_status::bad_detector_index;
    if (events_.size() == num_detectors_)
      return decode_status::duplicate_detector_index;
    ascending = ascending && (events_.empty() || events_.back() < event);
    events_.push_back(event);
  }
  if (ascending)
    return decode_status::ok;
  std::sort(events_.begin(), events_.end());
  if (std::adjacent_find(events_.begin(), events_.end()) != events_.end())
    return decode_status::duplicate_detector_index;
  return decode_status::ok;
}

decode_status decoder::take_bits(std::span<const std::uint8_t> events) noexcept {
  events_.clear();
  return for_each_event(events, num_detectors_, [this](std::uint64_t event) { events_.push_back(event); });
}

bool decoder::start(std::span<std::uint8_t> observables, decode_details *details) noexcept {
  has_solution_ = is_late_ = false;
  if (details != nullptr) {
    details->num_edges = details->num_errors = 0;
    details->weight = std::nan("");
    details->has_solution = details->is_late = false;
    details->winner = nullptr;
    std::ranges::fill(details->gaps, std::nan(""));
  }
  return observables.size() >= observable_bytes() &&
         (details == nullptr || details->gaps.empty() || details->gaps.size() >= num_observables());
}

bool decoder::supports(const decode_details *details, shot_probabilities probabilities) const noexcept {
  return (details == nullptr ||
          ((details->edges.empty() || gives_edges()) && (details->errors.empty() || gives_errors()) &&
           (details->gaps.empty() || refuses_gaps() == nullptr))) &&
         (probabilities.empty() || refuses_probabilities() == nullptr);
}

// The events were copied before this writes, so the answer may be in the memory of the events.
decode_status decoder::decode_taken(decode_status taken, std::span<std::uint8_t> observables, decode_details *details,
                                    shot_probabilities probabilities) noexcept {
  const auto out = observables.first(observable_bytes());
  std::fill(out.begin(), out.end(), std::uint8_t{0});
  if (taken != decode_status::ok)
    return taken;
  std::uint64_t deadline_ns = details != nullptr ? details->control.deadline_ns : kNoDeadline;
  const bool has_budget = budget_ns_ != 0 && deadline_ns == kNoDeadline;
  decode_details own;
  decode_details *wanted = details;
  if (has_budget) {
    const std::uint64_t now = monotonic_ns();
    deadline_ns = budget_ns_ < kNoDeadline - now ? now + budget_ns_ : kNoDeadline - 1; // the sum could overflow
    // A decoder that ignores it gets no details that the caller does not want: they may cost time.
    if (wanted == nullptr && obeys_deadline())
      wanted = &own;
    if (wanted != nullptr)
      wanted->control.deadline_ns = deadline_ns;
  }
  const decode_status status = decode_with(out, wanted, probabilities);
  if (has_budget && details != nullptr)
    details->control.deadline_ns = kNoDeadline;
  if (deadline_ns != kNoDeadline)
    count_deadline(status, deadline_ns);
  has_solution_ =
      status == decode_status::ok || (status == decode_status::deadline && wanted != nullptr && wanted->has_solution);
  if (!has_solution_)
    std::fill(out.begin(), out.end(), std::uint8_t{0});
  if (details != nullptr) {
    details->has_solution = has_solution_;
    details->is_late = is_late_;
    if (status != decode_status::ok)
      std::ranges::fill(details->gaps, std::nan(""));
    if (!has_solution_) {
      details->num_edges = details->num_errors = 0;
      details->weight = std::nan("");
    }
  }
  return status;
}

decode_status decoder::decode_with(std::span<std::uint8_t> observables, decode_details *details,
                                   shot_probabilities probabilities) noexcept {
  if (probabilities.empty())
    return decode_checked(events_, observables, details);
  if (const decode_status status = replace_probabilities(probabilities); status != decode_status::ok)
    return status;
  const decode_status status = decode_checked(events_, observables, details);
  restore_probabilities();
  return status;
}

void decoder::count_deadline(decode_status status, std::uint64_t deadline_ns) noexcept {
  is_late_ = status != decode_status::deadline && monotonic_ns() > deadline_ns;
  const bool missed = is_late_ || status == decode_status::deadline;
  ++(missed ? deadlines_.missed : deadlines_.met);
  deadlines_.late += is_late_;
}

decode_status decoder::decode(std::span<const std::uint64_t> events, std::span<std::uint8_t> observables) noexcept {
  return start(observables, nullptr) ? decode_taken(take_events(events), observables, nullptr)
                                     : decode_status::buffer_too_small;
}

decode_status decoder::decode(std::span<const std::uint64_t> events, std::span<std::uint8_t> observables,
                              decode_details &details) noexcept {
  if (!start(observables, &details))
    return decode_status::buffer_too_small;
  return decode_taken(supports(&details) ? take_events(events) : decode_status::not_supported, observables, &details);
}

decode_status decoder::decode_bits(std::span<const std::uint8_t> events, std::span<std::uint8_t> observables) noexcept {
  return start(observables, nullptr) ? decode_taken(take_bits(events), observables, nullptr)
                                     : decode_status::buffer_too_small;
}

decode_status decoder::decode_bits(std::span<const std::uint8_t> events, std::span<std::uint8_t> observables,
                                   decode_details &details) noexcept {
  if (!start(observables, &details))
    return decode_status::buffer_too_small;
  return decode_taken(supports(&details) ? take_bits(events) : decode_status::not_supported, observables, &details);
}

decode_status decoder::decode(std::span<const std::uint64_t> events, std::span<std::uint8_t> observables,
                              shot_probabilities probabilities, decode_details *details) noexcept {
  if (!start(observables, details))
    return decode_status::buffer_too_small;
  return decode_taken(supports(details, probabilities) ? take_events(events) : decode_status::not_supported,
                      observables, details, probabilities);
}

decode_status decoder::decode_bits(std::span<const std::uint8_t> events, std::span<std::uint8_t> observables,
                                   shot_probabilities probabilities, decode_details *details) noexcept {
  if (!start(observables, details))
    return decode_status::buffer_too_small;
  return decode_taken(supports(details, probabilities) ? take_bits(events) : decode_status::not_supported, observables,
                      details, probabilities);
}

decode_status decoder::decode_batch(std::size_t shots, std::span<const std::uint8_t> events,
                                    std::span<std::uint8_t> observables, std::span<decode_status> statuses) noexcept {
  return decode_batch(shots, events, observables, statuses, {});
}

decode_status decoder::decode_batch(std::size_t shots, std::span<const std::uint8_t> events,
                                    std::span<std::uint8_t> observables, std::span<decode_status> statuses,
                                    std::span<double> gaps) noexcept {
  const std::size_t in = event_bytes(), out = observable_bytes();
  const std::size_t num_gaps = gaps.empty() ? 0 : static_cast<std::size_t>(num_observables());
  // Divisions, since a product could wrap.
  if ((in != 0 && events.size() / in < shots) || (out != 0 && observables.size() / out < shots) ||
      (!statuses.empty() && statuses.size() < shots) || (num_gaps != 0 && gaps.size() / num_gaps < shots))
    return decode_status::buffer_too_small;
  decode_status first = decode_status::ok;
  for (std::size_t shot = 0; shot < shots; ++shot) {
    decode_details details{.gaps = gaps.subspan(shot * num_gaps, num_gaps)};
    const auto row = observables.subspan(shot * out, out);
    const decode_status status = num_gaps == 0 ? decode_bits(events.subspan(shot * in, in), row)
                                               : decode_bits(events.subspan(shot * in, in), row, details);
    if (!statuses.empty())
      statuses[shot] = status;
    if (first == decode_status::ok)
      first = status;
  }
  return first;
}

} // namespace cudaq::qec::realtime
