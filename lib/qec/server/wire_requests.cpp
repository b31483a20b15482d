// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/wire_requests.h"

#include <bit>
#include <cstring>

namespace cudaq::qec::realtime {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied from the wire as they are");

std::uint64_t number_at(std::span<const std::uint8_t> payload, std::size_t offset) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, payload.data() + offset, sizeof value);
  return value;
}

bool read_enqueue(std::span<const std::uint8_t> payload, wire_request &request) noexcept {
  if (payload.size() < kEnqueueHeadBytes)
    return false;
  request.counter = number_at(payload, 8);
  const std::uint64_t mapping_id = number_at(payload, 16);
  request.num_bits = number_at(payload, 24);
  request.bits = payload.subspan(kEnqueueHeadBytes);
  return mapping_id == 0 && request.num_bits <= kMostEnqueuedBits && request.bits.size() == (request.num_bits + 7) / 8;
}

bool read_get_corrections(std::span<const std::uint8_t> payload, wire_request &request) noexcept {
  if (payload.size() != kGetCorrectionsBytes)
    return false;
  request.num_bits = number_at(payload, 8);
  request.clear = payload[16] == 1;
  return payload[16] <= 1;
}

bool read_begin_tail(std::span<const std::uint8_t> payload, wire_request &request) noexcept {
  if (payload.size() != kBeginTailBytes)
    return false;
  request.counter = number_at(payload, 8);
  return true;
}

bool read_get_committed(std::span<const std::uint8_t> payload, wire_request &request) noexcept {
  if (payload.size() != kGetCommittedBytes)
    return false;
  request.num_bits = number_at(payload, 8);
  const std::uint64_t flag_and_zeros = number_at(payload, 16);
  request.clear = flag_and_zeros == 1;
  request.wait_for_round = number_at(payload, 24);
  return flag_and_zeros <= 1;
}

} // namespace

void write_model_facts(const model_facts &facts, std::span<std::uint8_t> result) noexcept {
  const std::uint64_t numbers[] = {facts.detectors, facts.bits_per_shot, facts.observables, facts.digest};
  static_assert(sizeof numbers == kModelFactsBytes);
  std::memcpy(result.data(), numbers, sizeof numbers);
}

std::optional<model_facts> read_model_facts(std::span<const std::uint8_t> result) noexcept {
  if (result.size() != kModelFactsBytes)
    return std::nullopt;
  return model_facts{number_at(result, 0), number_at(result, 8), number_at(result, 16), number_at(result, 24)};
}

read_result read_request(std::uint32_t function_id, std::span<const std::uint8_t> payload) noexcept {
  read_result read;
  if (function_id == kOneShotFunctionId) {
    read.request.function = wire_function::one_shot;
    read.request.bits = payload;
    read.status = server_status::ok;
    return read;
  }
  if (function_id == kDescribeFunctionId) {
    read.request.function = wire_function::describe;
    read.knows_decoder = payload.size() == sizeof read.request.decoder_id;
    if (read.knows_decoder)
      read.request.decoder_id = number_at(payload, 0);
    read.status = read.knows_decoder || payload.empty() ? server_status::ok : server_status::bad_request;
    return read;
  }
  using reader = bool (*)(std::span<const std::uint8_t> payload, wire_request & request) noexcept;
  constexpr struct {
    std::uint32_t id;
    wire_function function;
    reader read_fields;
  } kFunctions[] = {
      {kEnqueueFunctionId, wire_function::enqueue, &read_enqueue},
      {kGetCorrectionsFunctionId, wire_function::get_corrections, &read_get_corrections},
      {kResetFunctionId, wire_function::reset,
       [](std::span<const std::uint8_t> whole, wire_request &) noexcept { return whole.size() == kResetBytes; }},
      {kBeginTailFunctionId, wire_function::begin_tail, &read_begin_tail},
      {kGetCommittedFunctionId, wire_function::get_committed, &read_get_committed}};
  for (const auto &[id, wire, read_fields] : kFunctions) {
    if (id != function_id)
      continue;
    read.request.function = wire;
    read.knows_decoder = payload.size() >= kResetBytes;
    if (!read.knows_decoder)
      break;
    read.request.decoder_id = number_at(payload, 0);
    read.status = read_fields(payload, read.request) ? server_status::ok : server_status::bad_request;
  }
  return read;
}

} // namespace cudaq::qec::realtime
