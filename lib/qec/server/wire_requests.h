// SPDX-License-Identifier: Apache-2.0
// The requests of the decoding server as bytes: docs/transport/server.md, "The wire". All numbers are little-endian,
// without padding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace cudaq::qec::realtime {

// FNV-1a hashes of enqueue_syndromes, get_corrections, reset_decoder and qec_decode.
inline constexpr std::uint32_t kEnqueueFunctionId = 0x7ED8BE82;
inline constexpr std::uint32_t kGetCorrectionsFunctionId = 0x882D5BA1;
inline constexpr std::uint32_t kResetFunctionId = 0x977A59CF;
inline constexpr std::uint32_t kOneShotFunctionId = 0xC4B0E4BF; ///< a shot in one request: docs/message_protocol.md
/// FNV-1a hash of describe_decoder. The existing server does not know it.
inline constexpr std::uint32_t kDescribeFunctionId = 0xD546EA57;
// Of streams: FNV-1a hashes of begin_tail and get_committed.
inline constexpr std::uint32_t kBeginTailFunctionId = 0x21CDC649;
inline constexpr std::uint32_t kGetCommittedFunctionId = 0x75DD3F12;

/// The most bits of one enqueue request.
inline constexpr std::uint64_t kMostEnqueuedBits = std::uint64_t{1} << 20;
/// Bytes of an enqueue request before its bits; of the other requests.
inline constexpr std::size_t kEnqueueHeadBytes = 32, kGetCorrectionsBytes = 17, kResetBytes = 8;
inline constexpr std::size_t kBeginTailBytes = 16, kGetCommittedBytes = 32;
/// Bytes of an answer to get_committed before its bits.
inline constexpr std::size_t kCommittedHeadBytes = 16;

/// The answer to describe_decoder: four numbers of 64 bits. Of a stream: `detectors` are those of a repetition,
/// bits_per_shot is 0, and the digest is that of the repeating model.
struct model_facts {
  std::uint64_t detectors = 0, bits_per_shot = 0, observables = 0;
  std::uint64_t digest = 0; ///< model_digest of the decoder's model
  bool operator==(const model_facts &) const = default;
};
inline constexpr std::size_t kModelFactsBytes = 32;
/// `result`: at least kModelFactsBytes.
void write_model_facts(const model_facts &facts, std::span<std::uint8_t> result) noexcept;
[[nodiscard]] std::optional<model_facts> read_model_facts(std::span<const std::uint8_t> result) noexcept;

/// The status of a response of all functions but one_shot.
enum class server_status : std::int32_t {
  ok = 0,
  invalid_decoder = 1,
  bad_request = 2,
  internal = 3,
  not_ready = 4,
  busy = 5,
  syndromes_dropped = 6,
  stream_misaligned = 7,
  deadline = 8 ///< of enqueue: the shot's decode reached its deadline; its best solution so far counts, if there is one
};
inline constexpr std::size_t kServerStatuses = 9;
/// The names of the statuses in documents, messages and, in lower case, the labels of counters.
inline constexpr std::array<std::string_view, kServerStatuses> kServerStatusNames = {
    "OK",   "INVALID_DECODER",   "BAD_REQUEST",       "INTERNAL", "NOT_READY",
    "BUSY", "SYNDROMES_DROPPED", "STREAM_MISALIGNED", "DEADLINE"};

enum class wire_function : std::uint8_t {
  enqueue,
  get_corrections,
  reset,
  one_shot,
  describe,
  begin_tail,
  get_committed
};
/// Whether requests of this function have a place in the order of the bits: a lost one loses the stream.
[[nodiscard]] constexpr bool has_counter(wire_function function) noexcept {
  return function == wire_function::enqueue || function == wire_function::begin_tail;
}

/// A request that was checked. `bits` points into the payload that it was read from.
struct wire_request {
  wire_function function = wire_function::reset;
  std::uint64_t decoder_id = 0;       ///< not of one_shot, nor of a describe without an id
  std::uint64_t counter = 0;          ///< of enqueue and begin_tail
  std::uint64_t num_bits = 0;         ///< of enqueue; of the functions that read: the observables that are wanted
  std::uint64_t wait_for_round = 0;   ///< of get_committed: the rounds that must be final before the answer
  bool clear = false;                 ///< of the functions that read: set the corrections to 0 after reading
  std::span<const std::uint8_t> bits; ///< of enqueue and one_shot
};

/// The result of read_request. `knows_decoder`: request.function and request.decoder_id are valid although the rest of
/// the request is not.
struct read_result {
  server_status status = server_status::bad_request;
  bool knows_decoder = false;
  wire_request request{};
};

/// Checks the length and the fields of a payload. bad_request: an unknown function, another length than the fields
/// demand, a mapping id that is not 0, more than kMostEnqueuedBits bits, a flag that is neither 0 nor 1. Unused bits of
/// the last byte of an enqueue request are ignored.
[[nodiscard]] read_result read_request(std::uint32_t function_id, std::span<const std::uint8_t> payload) noexcept;

} // namespace cudaq::qec::realtime
