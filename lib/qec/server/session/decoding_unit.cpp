// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/session/decoding_unit.h"

#include "lib/qec/decoding/number_of.h"
#include "lib/qec/server/session/wire_requests.h"

#include <algorithm>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

/// Of a reload that is refused: what two tables may differ in.
std::string values_text(const stream_values_info &of) {
  const readout_facts others{of.other_soft, of.other_leakage, of.kinds};
  return " " + readout_facts_of(of).text() + " in a repetition, " + (others.any() ? others.text() : "none") +
         " in head and tail together,";
}

} // namespace

std::uint64_t longest_request_bits(std::uint64_t bits_per_shot, std::uint64_t num_detectors) noexcept {
  return std::max(std::min(bits_per_shot, kMaxEnqueuedBits), num_detectors);
}

std::uint64_t longest_stream_request_bits(std::uint64_t longest_part) noexcept {
  constexpr std::uint64_t kUsualBits = 1 << 16; // 8 KiB, because each place in the queue has them
  return std::min(std::max(kUsualBits, longest_part), kMaxEnqueuedBits);
}

std::uint64_t longest_stream_request_values(const stream_values_info &of) noexcept {
  constexpr std::uint64_t kUsualBytes = 1 << 13; // as many as those of the bits
  const readout_facts longest{std::max(of.body_soft, of.other_soft), std::max(of.body_leakage, of.other_leakage),
                              of.kinds};
  return longest.any() ? std::max(kUsualBytes, longest.longest_bytes()) : 0;
}

decoding_unit::decoding_unit(std::unique_ptr<decoder> with, sparse_rows from_measurements, std::uint64_t bits_per_shot,
                             std::uint64_t digest)
    : decoder_(std::move(with)), num_detectors_(decoder_->num_detectors()),
      num_observables_(decoder_->num_observables()), from_measurements_(std::move(from_measurements)),
      bits_per_shot_(bits_per_shot), digest_(digest),
      events_(from_measurements_.rows() == 0 ? 0 : decoder_->event_bytes()),
      gaps_(decoder_->refuses_gaps() == nullptr ? static_cast<std::size_t>(num_observables_) : 0) {
  for (auto &[member, won] : decoder_->wins()) // counted by name: several may have the same
    if (std::ranges::find(identity_->members, member) == identity_->members.end())
      identity_->members.push_back(std::move(member));
  identity_->wins.resize(identity_->members.size());
}

decoding_unit::decoding_unit(std::unique_ptr<stream_decoder> with, std::uint64_t digest)
    : stream_(std::move(with)), num_detectors_(stream_->body_detectors()), num_observables_(stream_->num_observables()),
      bits_per_shot_(0), digest_(digest) {}

std::uint64_t decoding_unit::max_request_bytes() const noexcept {
  if (!is_stream())
    return (longest_request_bits(bits_per_shot_, num_detectors_) + 7) / 8 + readout().longest_bytes();
  const std::uint64_t bits = longest_stream_request_bits(
      std::max({stream_->head_detectors(), stream_->body_detectors(), stream_->tail_detectors()}));
  return (bits + 7) / 8 + longest_stream_request_values(stream_->values_info());
}

bool decoding_unit::same_shape(const decoding_unit &other) const noexcept {
  return is_stream() == other.is_stream() && bits_per_shot_ == other.bits_per_shot_ &&
         num_detectors() == other.num_detectors() && num_observables() == other.num_observables() &&
         readout() == other.readout() && gap_bytes() == other.gap_bytes() &&
         (!is_stream() || (stream_->head_detectors() == other.stream_->head_detectors() &&
                           stream_->tail_detectors() == other.stream_->tail_detectors() &&
                           stream_->values_info() == other.stream_->values_info()));
}

std::string decoding_unit::shape_text() const {
  const std::string observables = " and " + number_of(num_observables(), "observable");
  if (is_stream())
    return "is a stream with " + number_of(stream_->head_detectors(), "detector") + " in the head, " +
           std::to_string(num_detectors()) + " in a repetition, " + std::to_string(stream_->tail_detectors()) +
           " in the tail," + (readout().any() ? values_text(stream_->values_info()) : "") + observables;
  return "has " + number_of(bits_per_shot(), "bit") + " per shot, " + (readout().any() ? readout().text() + ", " : "") +
         number_of(num_detectors(), "detector") + observables + (gap_bytes() != 0 ? " with gaps" : "");
}

decode_status decoding_unit::decode_stream(std::span<const std::uint8_t> bits, std::span<std::uint8_t> observables,
                                           const shot_readout &known) noexcept {
  if (from_measurements_.rows() == 0)
    return decode_events(bits, observables, known);
  std::fill(events_.begin(), events_.end(), std::uint8_t{0});
  for (std::size_t d = 0; d < from_measurements_.rows(); ++d) {
    unsigned parity = 0;
    for (const std::uint64_t m : from_measurements_.row(d))
      parity ^= static_cast<unsigned>(bits[m / 8]) >> (m % 8);
    events_[d / 8] = static_cast<std::uint8_t>(events_[d / 8] | (parity & 1U) << (d % 8));
  }
  return decode_events(events_, observables, known);
}

decode_status decoding_unit::decode_events(std::span<const std::uint8_t> events, std::span<std::uint8_t> observables,
                                           const shot_readout &known) noexcept {
  shot_probabilities list;
  is_refused_ = false;
  if (readout_ != nullptr) {
    if (const decode_status status = readout_->make_list(known); status != decode_status::ok) {
      is_refused_ = true;
      return status;
    }
    list = readout_->list();
  }
  const decode_status status = decode_with(events, observables, list);
  // After the decode, which refuses what is no shot. One that has no solution is a shot.
  const bool is_shot = status != decode_status::bad_detector_index && status != decode_status::buffer_too_small;
  if (identity_->rates != nullptr && is_shot)
    identity_->rates->count_shot(events);
  if (identity_->tap != nullptr && is_shot)
    identity_->tap->put(events, observables, status == decode_status::ok);
  return status;
}

/// Counts who has won a race. Of a shot that is not decoded no gap is known.
decode_status decoding_unit::decode_with(std::span<const std::uint8_t> events, std::span<std::uint8_t> observables,
                                         shot_probabilities list) noexcept {
  if (identity_->members.empty() && gaps_.empty())
    return decoder_->decode_bits(events, observables, list);
  decode_details details{.gaps = gaps_};
  const decode_status status = decoder_->decode_bits(events, observables, list, &details);
  if (details.winner != nullptr)
    if (const auto found = std::ranges::find(identity_->members, details.winner); found != identity_->members.end())
      identity_->wins[static_cast<std::size_t>(found - identity_->members.begin())].bump();
  return status;
}

std::uint64_t decoding_unit::take_member_faults() noexcept {
  if (identity_->members.empty())
    return 0;
  const std::uint64_t all = decoder_->member_faults();
  return all - std::exchange(member_faults_, all);
}

} // namespace cudaq::qec::realtime
