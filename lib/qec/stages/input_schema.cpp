// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/stages/input_schema.h"

#include <algorithm>
#include <cstring>

namespace cudaq::qec::realtime {
namespace {

bool bit(std::span<const std::uint8_t> bytes, std::size_t k) { return (bytes[k / 8] >> (k % 8) & 1) != 0; }
void put_bit(std::span<std::uint8_t> bytes, std::size_t k, bool value) {
  bytes[k / 8] = static_cast<std::uint8_t>(bytes[k / 8] | (value ? 1U << (k % 8) : 0U));
}

/// Reads an INT32 of the payload, which need not be aligned.
std::int32_t load(std::span<const std::uint8_t> payload, std::size_t element) {
  std::int32_t value;
  std::memcpy(&value, payload.data() + element * sizeof(value), sizeof(value));
  return value;
}
void store(std::span<std::uint8_t> payload, std::size_t element, bool bit) {
  const std::int32_t value = bit;
  std::memcpy(payload.data() + element * sizeof(value), &value, sizeof(value));
}

/// Plaquette (x, y) of the rotated code, 0 <= x, y <= d, has its measure qubit at (2x, 2y) and data qubits at
/// (2x +- 1, 2y +- 1). Odd x + y: X. The boundaries have every other plaquette: X above and below, Z at the sides.
bool is_plaquette(std::uint32_t d, std::uint32_t x, std::uint32_t y) {
  const bool is_x = (x + y) % 2 != 0;
  return !((x == 0 || x == d) && is_x) && !((y == 0 || y == d) && !is_x);
}

} // namespace

std::string_view name_of(input_schema schema) noexcept {
  return schema == input_schema::packed_events  ? "packed_events"
         : schema == input_schema::uint8_events ? "uint8_events"
                                                : "int32_measurements";
}

input_mapping::input_mapping(input_schema schema, const decoding_config &config) : schema_(schema), config_(config) {
  if (schema != input_schema::int32_measurements)
    return;
  const std::uint32_t d = config.distance;
  std::vector<std::uint32_t> row((d + 1) * (d + 1)); // index x * (d + 1) + y
  std::uint32_t next = 0;
  for (std::uint32_t y = 0; y <= d; ++y) // measurements are ordered by y, then x
    for (std::uint32_t x = 0; x <= d; ++x)
      if (is_plaquette(d, x, y))
        row[x * (d + 1) + y] = next++;
  for (std::uint32_t x = 0; x <= d; ++x) // detectors are ordered by x, then y
    for (std::uint32_t y = 0; y <= d; ++y) {
      if (!is_plaquette(d, x, y) || ((x + y) % 2 != 0) != (config.basis == 'X'))
        continue;
      row_of_.push_back(row[x * (d + 1) + y]);
      auto &around = data_around_.emplace_back();
      for (const std::uint32_t data_x : {x - 1, x}) // unsigned, so -1 is out of range too
        for (const std::uint32_t data_y : {y - 1, y})
          if (data_x < d && data_y < d)
            around.push_back(data_y * d + data_x); // the readout is ordered by y, then x
    }
}

std::size_t input_mapping::payload_bytes() const noexcept {
  return schema_ == input_schema::packed_events  ? config_.packed_input_bytes()
         : schema_ == input_schema::uint8_events ? config_.uint8_input_bytes()
                                                 : config_.int32_input_bytes();
}

std::size_t input_mapping::record_bytes() const noexcept {
  return (std::size_t{per_round()} * config_.rounds + config_.distance * config_.distance + 7) / 8;
}

decode_status input_mapping::read(std::span<const std::uint8_t> payload,
                                  std::span<std::uint8_t> packed) const noexcept {
  const std::size_t bytes = config_.packed_input_bytes();
  if (payload.size() < payload_bytes() || packed.size() < bytes)
    return decode_status::buffer_too_small;
  if (payload.size() > payload_bytes())
    return decode_status::bad_detector_index;
  std::fill_n(packed.begin(), bytes, std::uint8_t{0});
  std::uint32_t bad = 0; // collects all bits that must be 0
  if (schema_ == input_schema::packed_events) {
    std::copy(payload.begin(), payload.end(), packed.begin());
    bad = config_.num_detectors() % 8 == 0
              ? 0
              : static_cast<std::uint32_t>(payload.back()) >> (config_.num_detectors() % 8);
  } else if (schema_ == input_schema::uint8_events) {
    for (std::size_t k = 0; k < payload.size(); ++k) {
      bad |= payload[k] & 0xfeU;
      put_bit(packed, k, (payload[k] & 1) != 0);
    }
  } else {
    const std::uint32_t rounds = config_.rounds, h = config_.stabilizers();
    for (std::size_t i = 0; i < payload.size() / sizeof(std::int32_t); ++i)
      bad |= static_cast<std::uint32_t>(load(payload, i)) & ~1U;
    const auto at = [&](std::uint32_t row, std::uint32_t round) { return load(payload, element(row, round)) & 1; };
    for (std::uint32_t row = 2 * h; row < 3 * h; ++row)
      for (std::uint32_t round = 0; round + 1 < rounds; ++round)
        bad |= static_cast<std::uint32_t>(at(row, round));
    std::size_t detector = 0;
    for (std::uint32_t j = 0; j < h; ++j)
      put_bit(packed, detector++, at(row_of_[j], 0) != 0);
    for (std::uint32_t round = 1; round < rounds; ++round)
      for (std::uint32_t row = 0; row < 2 * h; ++row)
        put_bit(packed, detector++, at(row, round) != at(row, round - 1));
    for (std::uint32_t j = 0; j < h; ++j)
      put_bit(packed, detector++, at(2 * h + j, rounds - 1) != at(row_of_[j], rounds - 1));
  }
  return bad == 0 ? decode_status::ok : decode_status::bad_detector_index;
}

decode_status input_mapping::write(std::span<const std::uint8_t> packed,
                                   std::span<std::uint8_t> payload) const noexcept {
  const std::size_t bytes = config_.packed_input_bytes();
  if (packed.size() < bytes || payload.size() < payload_bytes())
    return decode_status::buffer_too_small;
  if (schema_ == input_schema::packed_events) {
    std::copy_n(packed.begin(), bytes, payload.begin());
  } else if (schema_ == input_schema::uint8_events) {
    for (std::size_t k = 0; k < payload_bytes(); ++k)
      payload[k] = bit(packed, k);
  } else {
    const std::uint32_t rounds = config_.rounds, h = config_.stabilizers();
    std::fill_n(payload.begin(), payload_bytes(), std::uint8_t{0});
    std::size_t detector = 0;
    for (std::uint32_t j = 0; j < h; ++j)
      store(payload, element(row_of_[j], 0), bit(packed, detector++));
    for (std::uint32_t round = 1; round < rounds; ++round)
      for (std::uint32_t row = 0; row < 2 * h; ++row)
        store(payload, element(row, round), bit(packed, detector++) != (load(payload, element(row, round - 1)) != 0));
    for (std::uint32_t j = 0; j < h; ++j)
      store(payload, element(2 * h + j, rounds - 1),
            bit(packed, detector++) != (load(payload, element(row_of_[j], rounds - 1)) != 0));
  }
  return decode_status::ok;
}

decode_status input_mapping::write_measurements(std::span<const std::uint8_t> record,
                                                std::span<std::uint8_t> payload) const noexcept {
  if (schema_ != input_schema::int32_measurements)
    return decode_status::bad_detector_index;
  if (record.size() < record_bytes() || payload.size() < payload_bytes())
    return decode_status::buffer_too_small;
  const std::uint32_t rounds = config_.rounds, h = config_.stabilizers();
  std::fill_n(payload.begin(), payload_bytes(), std::uint8_t{0});
  for (std::uint32_t round = 0; round < rounds; ++round)
    for (std::uint32_t row = 0; row < 2 * h; ++row)
      store(payload, element(row, round), bit(record, std::size_t{round} * per_round() + row));
  const std::size_t readout = std::size_t{per_round()} * rounds;
  for (std::uint32_t j = 0; j < h; ++j) {
    bool parity = false;
    for (const std::uint32_t data : data_around_[j])
      parity = parity != bit(record, readout + data);
    store(payload, element(2 * h + j, rounds - 1), parity);
  }
  return decode_status::ok;
}

} // namespace cudaq::qec::realtime
