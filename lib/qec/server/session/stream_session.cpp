// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/session/stream_session.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

server_status status_of(decode_status status) noexcept {
  switch (status) {
  case decode_status::ok:
    return server_status::ok;
  case decode_status::busy:
    return server_status::busy;
  case decode_status::stream_misaligned:
    return server_status::stream_misaligned;
  case decode_status::deadline: // of a window without a solution
    return server_status::deadline;
  case decode_status::not_converged:
    return server_status::not_converged;
  case decode_status::not_supported: // more bits than the queue of the workers takes, or values that the table does not
  case decode_status::buffer_too_small: // values are missing, or there are too many
  case decode_status::bad_probability:  // a value or a flag that is none
    return server_status::bad_request;
  default:
    return server_status::internal;
  }
}

} // namespace

stream_session::stream_session(std::unique_ptr<decoding_unit> with, bool sequence)
    : decoder_session(std::move(with), sequence), tail_(used_unit().stream()->tail_detectors()),
      frame_(corrections_.size()), cleared_(corrections_.size()) {}

server_status stream_session::answer_status(decode_status status) noexcept {
  const server_status answered = status_of(status);
  const bool is_too_long = status == decode_status::not_supported && *unit().fault() == '\0'; // no fault of values
  if (answered != server_status::ok && answered != server_status::busy &&
      answered != server_status::stream_misaligned && !is_too_long)
    note_failure(status);
  return answered;
}

bool stream_session::may_exchange() const noexcept {
  return phase_ == phase::broken || (phase_ == phase::rounds && unit().stream()->pushed_bits() == 0 && !has_values_);
}

stream_totals stream_session::totals() const noexcept {
  const stream_decoder &now = *unit().stream();
  const bool broken = phase_ == phase::broken;
  stream_totals all = before_;
  all.pushed += broken ? 0 : now.pushed_rounds();
  all.committed += broken ? 0 : now.committed_rounds();
  all.lag = broken ? 0 : now.pushed_rounds() - now.committed_rounds();
  all.worst_lag = worst_lag_;
  all.missing_tail = missing_tail();
  all.deadlines += now.statistics().deadlines; // 0 after a reset, so also of a broken stream
  return all;
}

server_status stream_session::append(const wire_request &request) noexcept {
  stream_values known;
  if (request.function == wire_function::enqueue_readout) {
    if (!unit().readout().any()) {
      note_refused_readout(request, {}); // also without values
      return server_status::bad_request;
    }
    const readout_arrays arrays = arrays_of(request);
    known = {arrays.soft, request.num_values, request.kind, arrays.leakage, request.num_flags};
  }
  const server_status status = phase_ == phase::rounds ? append_rounds(request, known) : append_tail(request, known);
  has_values_ = has_values_ || (status == server_status::ok && known.num_soft + known.num_leakage != 0);
  return status;
}

server_status stream_session::append_rounds(const wire_request &request, const stream_values &known) noexcept {
  const std::uint64_t first = stream().pushed_bits();
  const server_status status = answer_status(stream().push(request.bits, request.num_bits, known));
  // A push that found no room, or was refused, has taken no bit.
  if (detector_rates *const rates = used_unit().identity()->rates.get();
      rates != nullptr && stream().pushed_bits() == first + request.num_bits)
    rates->count_rounds(request.bits, first, request.num_bits);
  worst_lag_ = std::max(worst_lag_, stream().pushed_rounds() - stream().committed_rounds());
  return status;
}

server_status stream_session::append_tail(const wire_request &request, const stream_values &known) noexcept {
  if (request.num_bits > stream().tail_detectors() - tail_.size())
    return server_status::stream_misaligned;
  if (known.num_soft + known.num_leakage != 0) // the bits wait for the last of them
    if (const server_status status = answer_status(stream().push({}, 0, known)); status != server_status::ok)
      return status;
  tail_.append(request.bits, request.num_bits);
  return finish_if_complete();
}

server_status stream_session::begin_tail() noexcept {
  const std::uint64_t bits = stream().pushed_bits(), head = stream().head_detectors();
  if (phase_ != phase::rounds || bits < head || (bits - head) % stream().body_detectors() != 0)
    return server_status::stream_misaligned;
  phase_ = phase::tail;
  return finish_if_complete();
}

server_status stream_session::finish_if_complete() noexcept {
  if (phase_ != phase::tail || tail_.size() != stream().tail_detectors())
    return server_status::ok;
  const server_status status = answer_status(stream().finish(tail_.bytes(), tail_.size()));
  if (status == server_status::ok) {
    if (detector_rates *const rates = used_unit().identity()->rates.get(); rates != nullptr)
      rates->count_tail(tail_.bytes());
    phase_ = phase::complete;
    advance();
  }
  return status;
}

void stream_session::advance() noexcept {
  if (phase_ != phase::complete || !stream().poll().is_final)
    return;
  phase_ = phase::ended;
  ++shots_;
}

void stream_session::restart(bool for_good) noexcept {
  advance(); // the workers may have ended the stream after the last request
  before_ = totals();
  stream().reset();
  tail_.clear();
  std::ranges::fill(cleared_, std::uint8_t{0});
  framed_rounds_ = read_rounds_ = 0;
  has_values_ = false;
  phase_ = for_good ? phase::broken : phase::rounds;
}

/// Also rounds that workers still decode.
bool stream_session::has_unread() const noexcept {
  return phase_ != phase::broken && complete_rounds(*unit().stream()) > read_rounds_;
}

server_answer stream_session::get_committed(const wire_request &request, std::span<std::uint8_t> result) noexcept {
  if (result.size() < kCommittedHeadBytes || !can_answer(request, result.size() - kCommittedHeadBytes))
    return refuse(request.function, server_status::bad_request);
  const stream_progress now = read_frame();
  if (now.status != decode_status::ok) {
    const server_status status = answer_status(now.status);
    latch(status);
    return refuse(request.function, status);
  }
  if (!has_round(now, request))
    return {.waits = true};
  const server_answer bits = give_corrections(request, result.subspan(kCommittedHeadBytes));
  const std::uint64_t numbers[] = {now.committed_rounds, now.pushed_rounds};
  static_assert(sizeof numbers == kCommittedHeadBytes);
  std::memcpy(result.data(), numbers, sizeof numbers);
  return {0, static_cast<std::uint32_t>(sizeof numbers) + bits.bytes};
}

stream_progress stream_session::read_frame() noexcept {
  const stream_progress now = stream().poll(frame_);
  framed_rounds_ = now.committed_rounds;
  for (std::size_t i = 0; i < corrections_.size(); ++i)
    corrections_[i] = static_cast<std::uint8_t>(frame_[i] ^ cleared_[i]);
  return now;
}

server_status stream_session::update_corrections() noexcept { return answer_status(read_frame().status); }

void stream_session::corrections_cleared() noexcept { cleared_ = frame_; }

} // namespace cudaq::qec::realtime
