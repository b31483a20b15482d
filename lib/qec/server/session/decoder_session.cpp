// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/session/decoder_session.h"

#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <limits>
#include <utility>

namespace cudaq::qec::realtime {

namespace {

using cudaq::realtime::detail::remembered_requests;
using cudaq::realtime::detail::request_proof;
using cudaq::realtime::detail::request_state;

/// Longer than requesters repeat: the last repeat may have been long on its way.
constexpr std::chrono::seconds kLife{2 * CUDAQ_QEC_REPEAT_SECONDS};

std::size_t longest_answer(std::uint64_t num_observables, std::size_t gap_bytes) noexcept {
  return kCommittedHeadBytes + static_cast<std::size_t>((num_observables + 7) / 8 + num_observables * gap_bytes);
}

constexpr double kSure = std::numeric_limits<double>::infinity(); // no shot: there is no other value

} // namespace

server_status counted_status(wire_function function, std::int32_t status) noexcept {
  if (status == CUDAQ_RPC_ERR_BUSY)
    return server_status::busy;
  if (function != wire_function::one_shot || status == 0)
    return static_cast<server_status>(status);
  if (status < 0)
    return static_cast<server_status>(-status);
  switch (static_cast<decode_status>(status)) {
  case decode_status::deadline:
    return server_status::deadline;
  case decode_status::not_converged:
    return server_status::not_converged;
  case decode_status::bad_detector_index:
  case decode_status::duplicate_detector_index:
  case decode_status::buffer_too_small:
  case decode_status::bad_probability: // of a readout
    return server_status::bad_request;
  default:
    return server_status::internal;
  }
}

std::uint64_t replay_bytes(std::uint64_t num_observables, std::size_t gap_bytes) noexcept {
  return remembered_requests::bytes(CUDAQ_QEC_REPEAT_REQUESTS, longest_answer(num_observables, gap_bytes));
}

void write_gaps(std::span<const double> gaps, std::span<std::uint8_t> result) noexcept {
  for (std::size_t k = 0; k < gaps.size(); ++k) {
    const auto gap = static_cast<float>(gaps[k]);
    std::memcpy(result.data() + k * sizeof gap, &gap, sizeof gap);
  }
}

decoder_session::decoder_session(std::unique_ptr<decoding_unit> unit, bool sequence)
    : corrections_(static_cast<std::size_t>((unit->num_observables() + 7) / 8)), gaps_(unit->gaps().size(), kSure),
      unit_(std::move(unit)), sequence_(sequence),
      memory_(CUDAQ_QEC_REPEAT_REQUESTS, kLife, longest_answer(unit_->num_observables(), unit_->gap_bytes())) {}

std::optional<server_answer> decoder_session::answer_again(const wire_request &request, std::span<std::uint8_t> result,
                                                           time now) const noexcept {
  if (!changes_state(request))
    return {};
  request_proof wanted = request_proof::time_or_id;
  if (has_counter(request.function) && !sequence_) {
    wanted = request_proof::time;
  } else if (has_counter(request.function) && expected_counter_) {
    if (request.counter == *expected_counter_ && request.counter != refused_counter_)
      return {};
    // Only a counter that was used, or refused, can come again. After a gap an equal request may be one from before a
    // reset.
    const bool was_used = request.counter - *expected_counter_ >= std::uint64_t{1} << 63;
    wanted = was_used ? request_proof::time_or_counter : request_proof::time;
  }
  const auto kept = memory_.find(identity_of(request), wanted, now);
  if (kept.state == request_state::unseen || kept.answer.size() > result.size())
    return {};
  std::ranges::copy(kept.answer, result.begin());
  return server_answer{kept.status, static_cast<std::uint32_t>(kept.answer.size())};
}

server_answer decoder_session::serve(const wire_request &request, std::span<std::uint8_t> result, time now) noexcept {
  const server_answer answer = execute(request, result);
  // What failed has the same answer again: it latches, or had no effect.
  if (changes_state(request) && goes_on_after(static_cast<server_status>(answer.status)) && !answer.waits)
    memory_.answer(identity_of(request), answer.status, result.first(answer.bytes), now);
  return answer;
}

server_answer decoder_session::refuse_copies(const wire_request &request, server_status why, time now) noexcept {
  if (changes_state(request) && memory_.refuse(identity_of(request), static_cast<std::int32_t>(why), now) &&
      has_counter(request.function))
    refused_counter_ = request.counter;
  return refuse(request.function, why);
}

server_answer decoder_session::execute(const wire_request &request, std::span<std::uint8_t> result) noexcept {
  switch (request.function) {
  case wire_function::enqueue:
  case wire_function::enqueue_readout:
  case wire_function::begin_tail: {
    const server_status status = latched_ == server_status::ok ? apply_if_next(request) : latched_;
    if (status == server_status::busy)
      return {.waits = true};
    if (!goes_on_after(status) && status != server_status::not_ready)
      latch(status);
    return refuse(request.function, status);
  }
  case wire_function::get_corrections:
    return latched_ == server_status::ok ? get_corrections(request, result) : refuse(request.function, latched_);
  case wire_function::get_committed:
    return latched_ == server_status::ok ? get_committed(request, result) : refuse(request.function, latched_);
  case wire_function::one_shot:
    return request.while_ending ? refuse(request.function, server_status::not_ready) : decode_one(request, result);
  case wire_function::describe: // decoding_server answers both
  case wire_function::name:
    return refuse(request.function, server_status::bad_request);
  case wire_function::reset:
    reset();
  }
  return {};
}

/// A shot ends at its deadline. The rounds of a stream build on those before them.
bool decoder_session::goes_on_after(server_status status) const noexcept {
  return status == server_status::ok || (!unit_->is_stream() && status == server_status::deadline);
}

void decoder_session::reset() noexcept {
  was_reset_ = true;
  expected_counter_.reset();
  latched_ = server_status::ok;
  clear_corrections();
  restart(false);
}

void decoder_session::clear_corrections() noexcept {
  std::ranges::fill(corrections_, std::uint8_t{0});
  std::ranges::fill(gaps_, kSure);
}

void decoder_session::latch(server_status why) noexcept {
  if (latched_ == server_status::ok)
    latched_ = why;
  // The bits so far are of no use any more, so an exchange need not wait for their end.
  restart(true);
}

void decoder_session::note_failure(decode_status status) noexcept {
  const bool has_fault = status == decode_status::internal_error || unit_->is_refused() || unit_->is_stream();
  const char *const fault = has_fault ? unit_->fault() : "";
  const std::uint64_t of_members = unit_->take_member_faults();
  const bool has_other = failures_ != not_converged_; // its reason says more than that of one that did not converge
  // Of a race an internal error is that of its members; another status is a failure of its own.
  failures_ += status == decode_status::internal_error && of_members != 0 ? of_members : of_members + 1;
  if (status == decode_status::not_converged) {
    ++not_converged_;
    if (of_members != 0)
      return keep_fault_of_race();
    if (has_other)
      return;
  }
  // What is wrong with the values of a stream is the whole text.
  const bool is_whole = unit_->is_stream() && status != decode_status::internal_error && *fault != '\0';
  std::snprintf(last_failure_.data(), last_failure_.size(), "%s%s%s", is_whole ? "" : decode_status_text(status),
                is_whole || *fault == '\0' ? "" : ": ", fault);
}

void decoder_session::note_refused_readout(const wire_request &request, const readout_facts &facts,
                                           const readout_so_far &before) noexcept {
  ++failures_;
  if (request.names_kind && request.num_bits != unit_->num_detectors()) {
    std::snprintf(last_failure_.data(), last_failure_.size(),
                  "a shot of %" PRIu64 " detection events; the decoder takes %" PRIu64, request.num_bits,
                  unit_->num_detectors());
    return;
  }
  std::array<char, 128> more{};
  if (facts.any())
    std::snprintf(more.data(), more.size(),
                  ", in one of the kinds that describe_decoder tells; %" PRIu64 " (%s) and %" PRIu64 " had come before",
                  before.values, name_of(before.kind), before.flags);
  std::snprintf(last_failure_.data(), last_failure_.size(),
                "a request with %" PRIu64 " soft values (%s) and %" PRIu64
                " flags; of a shot the decoder takes %" PRIu64 " and %" PRIu64 "%s",
                request.num_values, name_of(request.kind), request.num_flags, facts.measurements, facts.flags,
                more.data());
}

void decoder_session::note_other_size(const char *has, std::uint64_t bytes, std::uint64_t needed) noexcept {
  ++failures_;
  std::snprintf(last_failure_.data(), last_failure_.size(), "%s %" PRIu64 " byte%s, the model needs %" PRIu64, has,
                bytes, bytes == 1 ? "" : "s", needed);
}

void decoder_session::note_member_faults() noexcept {
  const std::uint64_t faults = unit_->take_member_faults();
  if (faults == 0)
    return;
  failures_ += faults;
  keep_fault_of_race();
}

void decoder_session::keep_fault_of_race() noexcept {
  std::snprintf(last_failure_.data(), last_failure_.size(), "of a race, whose other members go on: %s", unit_->fault());
}

std::unique_ptr<decoding_unit> decoder_session::exchange(std::unique_ptr<decoding_unit> unit) noexcept {
  std::swap(unit_, unit);
  return unit;
}

server_status decoder_session::apply_if_next(const wire_request &request) noexcept {
  if (request.while_ending && !inside_shot())
    return server_status::not_ready;
  if (sequence_ && is_untouched() && request.counter > 1)
    return server_status::syndromes_dropped; // those before it went to a server that has ended
  if (sequence_ && expected_counter_ && request.counter != *expected_counter_)
    // The distance modulo 2^64 tells a gap from a counter that was used before.
    return request.counter - *expected_counter_ < std::uint64_t{1} << 63 ? server_status::syndromes_dropped
                                                                         : server_status::bad_request;
  const server_status status = request.function == wire_function::begin_tail ? begin_tail() : append(request);
  if (goes_on_after(status))
    expected_counter_ = request.counter + 1;
  return status;
}

bool decoder_session::can_answer(const wire_request &request, std::size_t room) const noexcept {
  return request.num_bits != 0 && request.num_bits <= unit_->num_observables() &&
         room >= unit_->answer_bytes(request.num_bits);
}

server_answer decoder_session::get_corrections(const wire_request &request, std::span<std::uint8_t> result) noexcept {
  if (!can_answer(request, result.size()))
    return refuse(request.function, server_status::bad_request);
  if (is_untouched())
    return refuse(request.function, server_status::syndromes_dropped); // the shots went to a server that has ended
  if (const server_status status = update_corrections(); status != server_status::ok) {
    latch(status);
    return refuse(request.function, status);
  }
  return give_corrections(request, result);
}

server_answer decoder_session::give_corrections(const wire_request &request, std::span<std::uint8_t> result) noexcept {
  const std::uint64_t wanted = request.num_bits;
  const auto bytes = static_cast<std::size_t>((wanted + 7) / 8);
  std::memcpy(result.data(), corrections_.data(), bytes);
  if (wanted % 8 != 0)
    result[bytes - 1] = static_cast<std::uint8_t>(result[bytes - 1] & ((1U << (wanted % 8)) - 1));
  if (!gaps_.empty())
    write_gaps(std::span(gaps_).first(static_cast<std::size_t>(wanted)), result.subspan(bytes));
  corrections_read();
  if (request.clear) {
    clear_corrections();
    corrections_cleared();
  }
  return {0, static_cast<std::uint32_t>(unit_->answer_bytes(wanted))};
}

void bit_buffer::append(std::span<const std::uint8_t> bits, std::uint64_t count) noexcept {
  const unsigned shift = size_ % 8;
  std::size_t at = static_cast<std::size_t>(size_ / 8);
  for (std::uint64_t left = count; left != 0; ++at) {
    const std::uint64_t here = std::min<std::uint64_t>(left, 8);
    const unsigned byte = bits[static_cast<std::size_t>((count - left) / 8)] & (0xFFU >> (8 - here));
    bytes_[at] = static_cast<std::uint8_t>(bytes_[at] | byte << shift);
    bytes_[at + 1] = static_cast<std::uint8_t>(bytes_[at + 1] | byte << shift >> 8);
    left -= here;
  }
  size_ += count;
}

void bit_buffer::clear() noexcept {
  std::ranges::fill(bytes_, std::uint8_t{0});
  size_ = 0;
}

} // namespace cudaq::qec::realtime
