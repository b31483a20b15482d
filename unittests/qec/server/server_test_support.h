// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/server/decoding_server.h"
#include "unittests/qec/soon.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cudaq::qec::realtime::test {

using bytes = std::vector<std::uint8_t>;

/// Detector k is flipped only by an error that flips observable (k + shift) % n: an answer is the shot, rotated.
inline std::string rotated_model(unsigned n, unsigned shift = 0) {
  std::string text;
  for (unsigned k = 0; k < n; ++k)
    text += "error(0.1) D" + std::to_string(k) + " L" + std::to_string((k + shift) % n) + "\n";
  return text;
}

inline std::unique_ptr<decoding_unit> unit_for(const std::string &model, sparse_rows from_measurements = {},
                                               std::uint64_t bits_per_shot = 0, const char *decoder = "lookup") {
  decoder_result made = make_decoder(decoder, model);
  if (!made)
    throw std::runtime_error(made.error);
  const std::uint64_t bits = bits_per_shot != 0 ? bits_per_shot : made.instance->num_detectors();
  return std::make_unique<decoding_unit>(std::move(made.instance), std::move(from_measurements), bits);
}

inline std::vector<decoder_setup> one_setup(const decoder_limits &limits, std::unique_ptr<decoding_unit> unit) {
  std::vector<decoder_setup> setups;
  setups.push_back({limits, std::move(unit)});
  return setups;
}

/// The bits of a text of 0 and 1, the first one in bit 0 of byte 0.
inline bytes packed(const std::string &bits) {
  bytes out((bits.size() + 7) / 8);
  for (std::size_t k = 0; k < bits.size(); ++k)
    out[k / 8] = static_cast<std::uint8_t>(out[k / 8] | (bits[k] == '1' ? 1 : 0) << (k % 8));
  return out;
}

inline void append_number(bytes &to, std::uint64_t value) {
  for (unsigned k = 0; k < 8; ++k)
    to.push_back(static_cast<std::uint8_t>(value >> (8 * k)));
}

inline bytes enqueue_payload(std::uint64_t id, std::uint64_t counter, const std::string &bits) {
  bytes payload;
  for (const std::uint64_t number : {id, counter, std::uint64_t{0}, std::uint64_t{bits.size()}})
    append_number(payload, number);
  const bytes data = packed(bits);
  payload.insert(payload.end(), data.begin(), data.end());
  return payload;
}

inline bytes get_payload(std::uint64_t id, std::uint64_t wanted, bool clear = false) {
  bytes payload;
  append_number(payload, id);
  append_number(payload, wanted);
  payload.push_back(clear ? 1 : 0);
  return payload;
}

inline bytes reset_payload(std::uint64_t id) {
  bytes payload;
  append_number(payload, id);
  return payload;
}

struct full_answer {
  std::int32_t status;
  bytes result;
  bool operator==(const full_answer &) const = default;
};

inline full_answer answered(server_status status, const std::string &bits = "") {
  return {static_cast<std::int32_t>(status), packed(bits)};
}

/// A request to a server whose decoders have no queue. Without an id and a time it is never taken for a repetition.
inline full_answer call(decoding_server &server, std::uint32_t function, const bytes &payload,
                        std::uint32_t request_id = 0, std::uint64_t timestamp = 0) {
  bytes result(256, 0xEE);
  server_answer now;
  if (!server.submit(function, payload, result, {.generation = 0, .slot = 0, .request_id = request_id}, now, timestamp))
    throw std::runtime_error("the request was queued");
  result.resize(now.bytes);
  return {now.status, result};
}

} // namespace cudaq::qec::realtime::test
