// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/session/wire_requests.h"

#include "lib/base/content_hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace cudaq::qec::realtime {

using cudaq::realtime::detail::content_hash;

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied from the wire as they are");

/// One of the structs of the public header. `bytes` has at least its size.
template <class T>
T read_as(std::span<const std::uint8_t> bytes) noexcept {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

bool read_enqueue(std::span<const std::uint8_t> payload, wire_request &request) noexcept {
  if (payload.size() < kEnqueueHeadBytes)
    return false;
  const auto head = read_as<cudaq_qec_enqueue_syndromes_t>(payload);
  request.counter = head.counter;
  request.num_bits = head.num_bits;
  const std::span<const std::uint8_t> rest = payload.subspan(kEnqueueHeadBytes);
  if (head.mapping_id != 0 || request.num_bits > kMaxEnqueuedBits || rest.size() < (request.num_bits + 7) / 8)
    return false;
  request.bits = rest.first((request.num_bits + 7) / 8);
  request.is_padded = rest.size() != request.bits.size();
  return true;
}

std::size_t bytes_for(std::uint64_t count, unsigned bits_of_each) noexcept {
  return static_cast<std::size_t>((count * bits_of_each + 7) / 8);
}

bool read_enqueue_readout(std::span<const std::uint8_t> payload, wire_request &request) noexcept {
  if (payload.size() < kEnqueueReadoutHeadBytes)
    return false;
  const auto head = read_as<cudaq_qec_enqueue_readout_t>(payload);
  request.counter = head.counter;
  request.num_bits = head.num_bits;
  request.num_values = head.num_values;
  request.num_flags = head.num_flags;
  request.kind = static_cast<soft_kind>(head.soft_kind);
  request.bits = payload.subspan(kEnqueueReadoutHeadBytes);
  if (std::max({head.num_bits, head.num_values, head.num_flags}) > kMaxEnqueuedBits || request.kind > soft_kind::u4 ||
      head.zero != 0)
    return false;
  return request.bits.size() ==
         bytes_for(head.num_bits, 1) + bytes_for(head.num_values, bits_of(request.kind)) + bytes_for(head.num_flags, 2);
}

bool read_one_shot_readout(std::span<const std::uint8_t> payload, wire_request &request) noexcept {
  return read_enqueue_readout(payload, request) && request.counter == 0;
}

bool read_get_corrections(std::span<const std::uint8_t> payload, wire_request &request) noexcept {
  if (payload.size() < kGetCorrectionsBytes)
    return false;
  const auto fields = read_as<cudaq_qec_get_corrections_t>(payload);
  request.num_bits = fields.num_observables;
  request.clear = fields.clear == 1;
  request.is_padded = fields.clear <= 1 && payload.size() != kGetCorrectionsBytes;
  return fields.clear <= 1;
}

bool read_reset(std::span<const std::uint8_t> payload, wire_request &request) noexcept {
  request.is_padded = payload.size() > kResetBytes;
  return payload.size() >= kResetBytes;
}

bool read_begin_tail(std::span<const std::uint8_t> payload, wire_request &request) noexcept {
  if (payload.size() != kBeginTailBytes)
    return false;
  request.counter = read_as<cudaq_qec_begin_tail_t>(payload).counter;
  return true;
}

bool read_get_committed(std::span<const std::uint8_t> payload, wire_request &request) noexcept {
  if (payload.size() != kGetCommittedBytes)
    return false;
  const auto fields = read_as<cudaq_qec_get_committed_t>(payload);
  request.num_bits = fields.num_observables;
  request.clear = fields.clear == 1;
  request.wait_for_round = fields.wait_for_round;
  return fields.clear <= 1 && std::ranges::all_of(fields.zeros, [](std::uint8_t byte) { return byte == 0; });
}

/// Of the functions that ask about a decoder: its id, or nothing for the decoder of one_shot.
read_result read_query(wire_function function, std::span<const std::uint8_t> payload) noexcept {
  read_result read;
  read.request.function = function;
  read.knows_decoder = payload.size() == sizeof read.request.decoder_id;
  if (read.knows_decoder)
    read.request.decoder_id = read_as<std::uint64_t>(payload);
  read.status = read.knows_decoder || payload.empty() ? server_status::ok : server_status::bad_request;
  return read;
}

read_result read_describe(std::span<const std::uint8_t> payload) noexcept {
  if (payload.size() != sizeof(cudaq_qec_describe_decoder_t))
    return read_query(wire_function::describe, payload);
  read_result read;
  read.request.function = wire_function::describe;
  const auto fields = read_as<cudaq_qec_describe_decoder_t>(payload);
  read.request.decoder_id = fields.decoder_id;
  read.request.with_gaps = fields.with_server == 4;
  read.request.with_readout = fields.with_server == 3 || read.request.with_gaps;
  read.request.with_stream = fields.with_server == 2 || read.request.with_readout;
  read.request.with_server = fields.with_server == 1 || read.request.with_stream;
  read.knows_decoder = true;
  read.status = read.request.with_server ? server_status::ok : server_status::bad_request;
  return read;
}

bool has_server_facts(std::span<const std::uint8_t> result) noexcept {
  return result.size() == kDescriptionBytes || result.size() == kStreamDescriptionBytes ||
         result.size() == kReadoutDescriptionBytes || result.size() == kGapsDescriptionBytes;
}

} // namespace

void write_model_facts(const model_facts &facts, std::span<std::uint8_t> result) noexcept {
  const std::uint64_t numbers[] = {facts.detectors, facts.bits_per_shot, facts.observables, facts.digest};
  static_assert(sizeof numbers == kModelFactsBytes);
  std::memcpy(result.data(), numbers, sizeof numbers);
}

void write_server_facts(const server_facts &facts, std::span<std::uint8_t> result) noexcept {
  const std::uint64_t numbers[] = {facts.boot_id,
                                   std::uint64_t{facts.ends ? CUDAQ_QEC_SERVER_ENDS : CUDAQ_QEC_SERVER_SERVES}};
  static_assert(kModelFactsBytes + sizeof numbers == kDescriptionBytes);
  std::memcpy(result.data() + kModelFactsBytes, numbers, sizeof numbers);
}

void write_stream_parts(const stream_parts &parts, std::span<std::uint8_t> result) noexcept {
  const std::uint64_t numbers[] = {parts.head, parts.tail, parts.missing};
  static_assert(kDescriptionBytes + sizeof numbers == kStreamDescriptionBytes);
  std::memcpy(result.data() + kDescriptionBytes, numbers, sizeof numbers);
}

void write_readout_facts(const readout_facts &facts, std::span<std::uint8_t> result) noexcept {
  const std::uint64_t numbers[] = {facts.measurements, facts.flags, facts.kinds};
  static_assert(kStreamDescriptionBytes + sizeof numbers == kReadoutDescriptionBytes);
  std::memcpy(result.data() + kStreamDescriptionBytes, numbers, sizeof numbers);
}

void write_gap_bytes(std::uint64_t gap_bytes, std::span<std::uint8_t> result) noexcept {
  static_assert(kReadoutDescriptionBytes + sizeof gap_bytes == kGapsDescriptionBytes);
  std::memcpy(result.data() + kReadoutDescriptionBytes, &gap_bytes, sizeof gap_bytes);
}

std::optional<model_facts> read_model_facts(std::span<const std::uint8_t> result) noexcept {
  if (result.size() != kModelFactsBytes && !has_server_facts(result))
    return std::nullopt;
  const auto numbers = read_as<std::array<std::uint64_t, 4>>(result);
  return model_facts{numbers[0], numbers[1], numbers[2], numbers[3]};
}

std::optional<server_facts> read_server_facts(std::span<const std::uint8_t> result) noexcept {
  if (!has_server_facts(result))
    return std::nullopt;
  const auto all = read_as<cudaq_qec_decoder_description_t>(result);
  return server_facts{all.boot_id, all.server_state == CUDAQ_QEC_SERVER_ENDS};
}

std::optional<readout_facts> read_readout_facts(std::span<const std::uint8_t> result) noexcept {
  if (result.size() != kReadoutDescriptionBytes && result.size() != kGapsDescriptionBytes)
    return std::nullopt;
  const auto all = read_as<cudaq_qec_readout_description_t>(result);
  return readout_facts{all.num_measurements, all.num_flags, all.soft_kinds};
}

std::optional<std::uint64_t> read_gap_bytes(std::span<const std::uint8_t> result) noexcept {
  if (result.size() != kGapsDescriptionBytes)
    return std::nullopt;
  return read_as<cudaq_qec_gaps_description_t>(result).gap_bytes;
}

readout_arrays arrays_of(const wire_request &request) noexcept {
  const auto after_bits = request.bits.subspan(bytes_for(request.num_bits, 1));
  const std::size_t soft = bytes_for(request.num_values, bits_of(request.kind));
  return {after_bits.first(soft), after_bits.subspan(soft)};
}

bool is_copy(const wire_request &a, const wire_request &b) noexcept {
  // Of a function that changes state the content has all bytes, of the others the fields and the bits.
  return a.timestamp != 0 && a.timestamp == b.timestamp && a.request_id == b.request_id && a.function == b.function &&
         a.content == b.content && a.num_bits == b.num_bits && a.wait_for_round == b.wait_for_round &&
         std::ranges::equal(a.bits, b.bits);
}

read_result read_request(std::uint32_t function_id, std::span<const std::uint8_t> payload) noexcept {
  read_result read;
  if (function_id == kOneShotFunctionId) {
    read.request.function = wire_function::one_shot;
    read.request.bits = payload;
    read.status = server_status::ok;
    return read;
  }
  if (function_id == kDescribeFunctionId)
    return read_describe(payload);
  if (function_id == kNameFunctionId)
    return read_query(wire_function::name, payload);
  using reader = bool (*)(std::span<const std::uint8_t> payload, wire_request & request) noexcept;
  constexpr struct {
    std::uint32_t id;
    wire_function function;
    reader read_fields;
  } kFunctions[] = {{kEnqueueFunctionId, wire_function::enqueue, &read_enqueue},
                    {kEnqueueReadoutFunctionId, wire_function::enqueue_readout, &read_enqueue_readout},
                    {kOneShotReadoutFunctionId, wire_function::one_shot, &read_one_shot_readout},
                    {kGetCorrectionsFunctionId, wire_function::get_corrections, &read_get_corrections},
                    {kResetFunctionId, wire_function::reset, &read_reset},
                    {kBeginTailFunctionId, wire_function::begin_tail, &read_begin_tail},
                    {kGetCommittedFunctionId, wire_function::get_committed, &read_get_committed}};
  for (const auto &[id, wire, read_fields] : kFunctions) {
    if (id != function_id)
      continue;
    read.request.function = wire;
    read.request.names_kind = wire == wire_function::one_shot;
    read.knows_decoder = payload.size() >= kResetBytes;
    if (!read.knows_decoder)
      break;
    read.request.decoder_id = read_as<std::uint64_t>(payload);
    read.status = read_fields(payload, read.request) ? server_status::ok : server_status::bad_request;
    if (changes_state(read.request))
      read.request.content = content_hash(function_id, payload);
  }
  return read;
}

} // namespace cudaq::qec::realtime
