// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/session/shot_session.h"

#include "lib/qec/server/session/stream_session.h"

#include <algorithm>
#include <utility>

namespace cudaq::qec::realtime {

std::unique_ptr<decoder_session> make_session(std::unique_ptr<decoding_unit> unit, bool sequence) {
  if (unit->is_stream())
    return std::make_unique<stream_session>(std::move(unit), sequence);
  return std::make_unique<shot_session>(std::move(unit), sequence);
}

shot_session::shot_session(std::unique_ptr<decoding_unit> with, bool sequence)
    : decoder_session(std::move(with), sequence), shot_(unit().bits_per_shot()), observables_(corrections_.size()) {}

server_status shot_session::append(const wire_request &request) noexcept {
  if (request.num_bits > unit().bits_per_shot() - shot_.size())
    return server_status::bad_request;
  shot_.append(request.bits, request.num_bits);
  return shot_.size() == unit().bits_per_shot() ? decode_shot() : server_status::ok;
}

server_status shot_session::decode_shot() noexcept {
  const decode_status status = used_unit().decode_stream(shot_.bytes(), observables_);
  shot_.clear();
  if (status != decode_status::ok && status != decode_status::deadline) {
    note_failure(status);
    return status == decode_status::not_converged ? server_status::not_converged : server_status::internal;
  }
  note_member_faults();
  ++shots_;
  unread_ = true;
  for (std::size_t i = 0; i < corrections_.size(); ++i)
    corrections_[i] = static_cast<std::uint8_t>(corrections_[i] ^ observables_[i]);
  return status == decode_status::ok && !unit().is_late() ? server_status::ok : server_status::deadline;
}

server_answer shot_session::decode_one(const wire_request &request, std::span<std::uint8_t> result) noexcept {
  const std::size_t bytes = observables_.size();
  if (result.size() < bytes)
    return {static_cast<std::int32_t>(decode_status::buffer_too_small), 0};
  if (request.bits.size() > (unit().num_detectors() + 7) / 8)
    return {static_cast<std::int32_t>(decode_status::bad_detector_index), 0};
  const decode_status status = used_unit().decode_events(request.bits, result.first(bytes));
  if (!unit().has_solution() && status != decode_status::deadline)
    note_failure(status);
  if (!unit().has_solution())
    return {static_cast<std::int32_t>(status), 0};
  note_member_faults();
  ++shots_;
  const decode_status answered = unit().is_late() ? decode_status::deadline : status;
  return {static_cast<std::int32_t>(answered), static_cast<std::uint32_t>(bytes)};
}

} // namespace cudaq::qec::realtime
