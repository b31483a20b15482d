// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/session/shot_session.h"

#include "lib/qec/server/session/stream_session.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cudaq::qec::realtime {

std::unique_ptr<decoder_session> make_session(std::unique_ptr<decoding_unit> unit, bool sequence) {
  if (unit->is_stream())
    return std::make_unique<stream_session>(std::move(unit), sequence);
  return std::make_unique<shot_session>(std::move(unit), sequence);
}

shot_session::shot_session(std::unique_ptr<decoding_unit> with, bool sequence)
    : decoder_session(std::move(with), sequence), shot_(unit().bits_per_shot()),
      soft_(8 * (unit().readout().longest_bytes() - unit().readout().leakage_bytes())),
      leakage_(2 * unit().readout().flags), observables_(corrections_.size()) {}

server_status shot_session::append(const wire_request &request) noexcept {
  if (request.num_bits > unit().bits_per_shot() - shot_.size())
    return server_status::bad_request;
  if (request.function == wire_function::enqueue_readout && !take_readout(request))
    return server_status::bad_request;
  shot_.append(request.bits, request.num_bits);
  return shot_.size() == unit().bits_per_shot() ? decode_shot() : server_status::ok;
}

/// False: these are not the next values and flags of the shot.
bool shot_session::take_readout(const wire_request &request) noexcept {
  const readout_facts facts = unit().readout();
  const unsigned width = bits_of(request.kind);
  const std::uint64_t soft = request.num_values * width, leakage = 2 * request.num_flags;
  const bool kind_fits = soft == 0 || (facts.takes(request.kind) && (soft_.size() == 0 || request.kind == kind_));
  if (!facts.any() || !kind_fits || (soft != 0 && soft > facts.measurements * width - soft_.size()) ||
      leakage > 2 * facts.flags - leakage_.size()) {
    note_refused_readout(request, facts, {soft_.size() / bits_of(kind_), leakage_.size() / 2, kind_});
    return false;
  }
  if (soft != 0)
    kind_ = request.kind;
  const readout_arrays arrays = arrays_of(request);
  soft_.append(arrays.soft, soft);
  leakage_.append(arrays.leakage, leakage);
  return true;
}

void shot_session::clear_shot() noexcept {
  shot_.clear();
  soft_.clear();
  leakage_.clear();
}

server_status shot_session::decode_shot() noexcept {
  const readout_facts facts = unit().readout();
  const soft_kind kind = soft_.size() != 0 ? kind_ : facts.kind_of(0);
  const decode_status status = used_unit().decode_stream(
      shot_.bytes(), observables_,
      {.soft = soft_.bytes().first(static_cast<std::size_t>((soft_.size() + 7) / 8)),
       .kind = kind,
       .leakage = leakage_.bytes().first(static_cast<std::size_t>((leakage_.size() + 7) / 8))});
  clear_shot();
  if (unit().is_refused()) {
    note_failure(status);
    return status == decode_status::internal_error ? server_status::internal : server_status::bad_request;
  }
  if (status != decode_status::ok && status != decode_status::deadline) {
    note_failure(status);
    return status == decode_status::not_converged ? server_status::not_converged : server_status::internal;
  }
  note_member_faults();
  ++shots_;
  unread_ = true;
  for (std::size_t i = 0; i < corrections_.size(); ++i)
    corrections_[i] = static_cast<std::uint8_t>(corrections_[i] ^ observables_[i]);
  for (std::size_t k = 0; k < gaps_.size(); ++k)
    if (const double gap = unit().gaps()[k]; !std::isnan(gaps_[k]) && !(gap >= gaps_[k])) // also if it is NaN
      gaps_[k] = gap;
  return status == decode_status::ok && !unit().is_late() ? server_status::ok : server_status::deadline;
}

/// The events, and after them the soft values and the flags of a decoder with a table.
decode_status shot_session::decode_payload(std::span<const std::uint8_t> payload,
                                           std::span<std::uint8_t> result) noexcept {
  const readout_facts facts = unit().readout();
  const std::size_t events = std::min(payload.size(), static_cast<std::size_t>((unit().num_detectors() + 7) / 8));
  const std::span<const std::uint8_t> rest = payload.subspan(events);
  const std::size_t leakage = std::min(rest.size(), static_cast<std::size_t>(facts.leakage_bytes()));
  const std::span<const std::uint8_t> soft = rest.first(rest.size() - leakage);
  return used_unit().decode_events(
      payload.first(events), result,
      {.soft = soft, .kind = facts.kind_of(soft.size()), .leakage = rest.subspan(soft.size())});
}

/// Of qec_decode_readout: its arrays are those of a whole shot.
bool shot_session::fits(const wire_request &one_shot) const noexcept {
  const readout_facts facts = unit().readout();
  return facts.any() && one_shot.num_bits == unit().num_detectors() && one_shot.num_values == facts.measurements &&
         one_shot.num_flags == facts.flags && (facts.measurements == 0 || facts.takes(one_shot.kind));
}

decode_status shot_session::decode_arrays(const wire_request &one_shot, std::span<std::uint8_t> result) noexcept {
  const readout_arrays arrays = arrays_of(one_shot);
  return used_unit().decode_events(one_shot.bits.first(static_cast<std::size_t>((one_shot.num_bits + 7) / 8)), result,
                                   {.soft = arrays.soft, .kind = one_shot.kind, .leakage = arrays.leakage});
}

server_answer shot_session::decode_one(const wire_request &request, std::span<std::uint8_t> result) noexcept {
  const std::size_t bytes = observables_.size();
  if (const std::uint64_t answer = unit().answer_bytes(unit().num_observables()); result.size() < answer) {
    note_other_size("the slot's room for the answer has", result.size(), answer);
    return {static_cast<std::int32_t>(decode_status::buffer_too_small), 0};
  }
  if (request.names_kind && !fits(request)) {
    note_refused_readout(request, unit().readout(), {});
    return refuse(request.function, server_status::bad_request);
  }
  const std::uint64_t events = (unit().num_detectors() + 7) / 8;
  if (!unit().readout().any() && request.bits.size() != events) {
    note_other_size("the shot has", request.bits.size(), events);
    return {static_cast<std::int32_t>(request.bits.size() < events ? decode_status::buffer_too_small
                                                                   : decode_status::bad_detector_index),
            0};
  }
  const decode_status status = request.names_kind ? decode_arrays(request, result.first(bytes))
                                                  : decode_payload(request.bits, result.first(bytes));
  if (!unit().has_solution() && status != decode_status::deadline)
    note_failure(status);
  if (!unit().has_solution())
    return {static_cast<std::int32_t>(status), 0};
  note_member_faults();
  ++shots_;
  const decode_status answered = unit().is_late() ? decode_status::deadline : status;
  write_gaps(unit().gaps(), result.subspan(bytes));
  return {static_cast<std::int32_t>(answered),
          static_cast<std::uint32_t>(unit().answer_bytes(unit().num_observables()))};
}

} // namespace cudaq::qec::realtime
