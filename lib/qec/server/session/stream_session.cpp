// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/session/stream_session.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

server_status status_of(decode_status status) noexcept {
  if (status == decode_status::ok)
    return server_status::ok;
  return status == decode_status::stream_misaligned ? server_status::stream_misaligned : server_status::internal;
}

} // namespace

stream_session::stream_session(std::unique_ptr<decoding_unit> with, bool sequence)
    : decoder_session(std::move(with), sequence), tail_(used_unit().stream()->tail_detectors()),
      cleared_(corrections_.size()) {}

bool stream_session::may_exchange() const noexcept {
  return phase_ == phase::broken || (phase_ == phase::rounds && unit().stream()->pushed_bits() == 0);
}

stream_totals stream_session::totals() const noexcept {
  const stream_decoder &now = *unit().stream();
  const bool broken = phase_ == phase::broken;
  stream_totals all = before_;
  all.pushed += broken ? 0 : now.pushed_rounds();
  all.committed += broken ? 0 : now.committed_rounds();
  all.lag = broken ? 0 : now.pushed_rounds() - now.committed_rounds();
  all.worst_lag = worst_lag_;
  return all;
}

server_status stream_session::append(const wire_request &request) noexcept {
  if (phase_ == phase::rounds) {
    const server_status status = status_of(stream().push(request.bits, request.num_bits));
    worst_lag_ = std::max(worst_lag_, stream().pushed_rounds() - stream().committed_rounds());
    return status;
  }
  if (request.num_bits > stream().tail_detectors() - tail_.size())
    return server_status::stream_misaligned;
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
  const server_status status = status_of(stream().finish(tail_.bytes(), tail_.size()));
  if (status == server_status::ok) {
    phase_ = phase::ended;
    ++shots_;
  }
  return status;
}

void stream_session::restart(bool for_good) noexcept {
  before_ = totals();
  stream().reset();
  tail_.clear();
  std::ranges::fill(cleared_, std::uint8_t{0});
  phase_ = for_good ? phase::broken : phase::rounds;
}

server_answer stream_session::get_committed(const wire_request &request, std::span<std::uint8_t> result) noexcept {
  const std::uint64_t numbers[] = {stream().committed_rounds(), stream().pushed_rounds()};
  static_assert(sizeof numbers == kCommittedHeadBytes);
  if (result.size() < sizeof numbers || !can_answer(request, result.size() - sizeof numbers))
    return refuse(request.function, server_status::bad_request);
  if (numbers[0] < request.wait_for_round && phase_ != phase::ended)
    return {0, 0, true};
  const server_answer bits = get_corrections(request, result.subspan(sizeof numbers));
  std::memcpy(result.data(), numbers, sizeof numbers);
  return {0, static_cast<std::uint32_t>(sizeof numbers) + bits.bytes};
}

void stream_session::update_corrections() noexcept {
  const std::span<const std::uint8_t> now = stream().observables();
  for (std::size_t i = 0; i < corrections_.size(); ++i)
    corrections_[i] = static_cast<std::uint8_t>(now[i] ^ cleared_[i]);
}

void stream_session::corrections_cleared() noexcept { std::ranges::copy(stream().observables(), cleared_.begin()); }

} // namespace cudaq::qec::realtime
