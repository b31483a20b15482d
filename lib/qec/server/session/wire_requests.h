// SPDX-License-Identifier: Apache-2.0
// The requests of the decoding server as bytes: docs/transport/server_wire.md, "The wire". All numbers are
// little-endian, without padding. Ids, payloads and statuses are those of the public header.
#pragma once

#include "cudaq/qec/realtime/decoding_server_wire.h"
#include "lib/qec/server/session/unit_readout.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace cudaq::qec::realtime {

inline constexpr std::uint32_t kEnqueueFunctionId = CUDAQ_QEC_ENQUEUE_SYNDROMES;
inline constexpr std::uint32_t kGetCorrectionsFunctionId = CUDAQ_QEC_GET_CORRECTIONS;
inline constexpr std::uint32_t kResetFunctionId = CUDAQ_QEC_RESET_DECODER;
inline constexpr std::uint32_t kOneShotFunctionId = CUDAQ_QEC_DECODE; ///< a shot in one request
// The existing server does not know these.
inline constexpr std::uint32_t kEnqueueReadoutFunctionId = CUDAQ_QEC_ENQUEUE_READOUT;
inline constexpr std::uint32_t kOneShotReadoutFunctionId = CUDAQ_QEC_DECODE_READOUT;
inline constexpr std::uint32_t kDescribeFunctionId = CUDAQ_QEC_DESCRIBE_DECODER;
inline constexpr std::uint32_t kNameFunctionId = CUDAQ_QEC_GET_DECODER_NAME;
// Of streams.
inline constexpr std::uint32_t kBeginTailFunctionId = CUDAQ_QEC_BEGIN_TAIL;
inline constexpr std::uint32_t kGetCommittedFunctionId = CUDAQ_QEC_GET_COMMITTED;

/// The most bits of one enqueue request.
inline constexpr std::uint64_t kMaxEnqueuedBits = CUDAQ_QEC_MAX_ENQUEUED_BITS;
/// Bytes of an enqueue request before its bits; of the other requests.
inline constexpr std::size_t kEnqueueHeadBytes = sizeof(cudaq_qec_enqueue_syndromes_t);
inline constexpr std::size_t kEnqueueReadoutHeadBytes = sizeof(cudaq_qec_enqueue_readout_t);
inline constexpr std::size_t kGetCorrectionsBytes = sizeof(cudaq_qec_get_corrections_t);
inline constexpr std::size_t kResetBytes = sizeof(cudaq_qec_reset_decoder_t);
inline constexpr std::size_t kBeginTailBytes = sizeof(cudaq_qec_begin_tail_t);
inline constexpr std::size_t kGetCommittedBytes = sizeof(cudaq_qec_get_committed_t);
/// Bytes of an answer to get_committed before its bits.
inline constexpr std::size_t kCommittedHeadBytes = sizeof(cudaq_qec_committed_t);

/// The answer to describe_decoder: four numbers of 64 bits. Of a stream: `detectors` are those of a repetition,
/// bits_per_shot is 0, and the digest is that of the repeating model.
struct model_facts {
  std::uint64_t detectors = 0, bits_per_shot = 0, observables = 0;
  std::uint64_t digest = 0; ///< model_digest of the decoder's model
  bool operator==(const model_facts &) const = default;
};
inline constexpr std::size_t kModelFactsBytes = offsetof(cudaq_qec_decoder_description_t, boot_id);
/// What a longer answer has after them. boot_id: another number says that the server was started again.
struct server_facts {
  std::uint64_t boot_id = 0;
  bool ends = false;
  bool operator==(const server_facts &) const = default;
};
inline constexpr std::size_t kDescriptionBytes = sizeof(cudaq_qec_decoder_description_t);
/// What a longer one has after them: detectors of the head and of the tail, and bits that the tail still lacks.
struct stream_parts {
  std::uint64_t head = 0, tail = 0, missing = 0;
};
inline constexpr std::size_t kStreamDescriptionBytes = sizeof(cudaq_qec_stream_description_t);
/// A longer one ends with readout_facts.
inline constexpr std::size_t kReadoutDescriptionBytes = sizeof(cudaq_qec_readout_description_t);
/// The longest one ends with the bytes of a gap in answers.
inline constexpr std::size_t kGapsDescriptionBytes = sizeof(cudaq_qec_gaps_description_t);
/// `result`: at least kModelFactsBytes.
void write_model_facts(const model_facts &facts, std::span<std::uint8_t> result) noexcept;
/// `result`: at least kDescriptionBytes.
void write_server_facts(const server_facts &facts, std::span<std::uint8_t> result) noexcept;
/// `result`: at least kStreamDescriptionBytes.
void write_stream_parts(const stream_parts &parts, std::span<std::uint8_t> result) noexcept;
/// `result`: at least kReadoutDescriptionBytes.
void write_readout_facts(const readout_facts &facts, std::span<std::uint8_t> result) noexcept;
/// `result`: at least kGapsDescriptionBytes.
void write_gap_bytes(std::uint64_t gap_bytes, std::span<std::uint8_t> result) noexcept;
/// Of an answer of each of the five lengths.
[[nodiscard]] std::optional<model_facts> read_model_facts(std::span<const std::uint8_t> result) noexcept;
/// Of the four longer answers.
[[nodiscard]] std::optional<server_facts> read_server_facts(std::span<const std::uint8_t> result) noexcept;
/// Of the two longest answers.
[[nodiscard]] std::optional<readout_facts> read_readout_facts(std::span<const std::uint8_t> result) noexcept;
/// Of the longest answer.
[[nodiscard]] std::optional<std::uint64_t> read_gap_bytes(std::span<const std::uint8_t> result) noexcept;

/// The status of a response of all functions but one_shot.
enum class server_status : std::int32_t {
  ok = CUDAQ_QEC_SERVER_OK,
  invalid_decoder = CUDAQ_QEC_SERVER_INVALID_DECODER,
  bad_request = CUDAQ_QEC_SERVER_BAD_REQUEST,
  internal = CUDAQ_QEC_SERVER_INTERNAL,
  not_ready = CUDAQ_QEC_SERVER_NOT_READY,
  busy = CUDAQ_QEC_SERVER_BUSY,
  syndromes_dropped = CUDAQ_QEC_SERVER_SYNDROMES_DROPPED,
  stream_misaligned = CUDAQ_QEC_SERVER_STREAM_MISALIGNED,
  /// Of enqueue: the shot's decode reached its deadline; its best solution so far counts, if there is one.
  deadline = CUDAQ_QEC_SERVER_DEADLINE,
  /// The decoder found no solution of the shot, or of a window, within its limits; it latches.
  not_converged = CUDAQ_QEC_SERVER_NOT_CONVERGED
};
inline constexpr std::size_t kServerStatuses = 10;
/// The names of the statuses in documents, messages and, in lower case, the labels of counters.
inline constexpr std::array<std::string_view, kServerStatuses> kServerStatusNames = {
    "OK",   "INVALID_DECODER",   "BAD_REQUEST",       "INTERNAL", "NOT_READY",
    "BUSY", "SYNDROMES_DROPPED", "STREAM_MISALIGNED", "DEADLINE", "NOT_CONVERGED"};

enum class wire_function : std::uint8_t {
  enqueue,
  enqueue_readout,
  get_corrections,
  reset,
  one_shot,
  describe,
  name,
  begin_tail,
  get_committed
};
/// Whether requests of this function have a place in the order of the bits: a lost one loses the stream.
[[nodiscard]] constexpr bool has_counter(wire_function function) noexcept {
  return function == wire_function::enqueue || function == wire_function::enqueue_readout ||
         function == wire_function::begin_tail;
}

/// A request that was checked. `bits` points into the payload that it was read from.
struct wire_request {
  wire_function function = wire_function::reset;
  std::uint64_t decoder_id = 0; ///< not of qec_decode, nor of a describe or name without an id
  std::uint64_t counter = 0;    ///< of enqueue, enqueue_readout and begin_tail
  bool names_kind = false;      ///< of one_shot: it is qec_decode_readout
  std::uint64_t num_values = 0; ///< of enqueue_readout and qec_decode_readout, as the next two
  std::uint64_t num_flags = 0;
  soft_kind kind = soft_kind::f32;
  /// Of enqueue, enqueue_readout and qec_decode_readout; of the functions that read: the observables that are wanted.
  std::uint64_t num_bits = 0;
  std::uint64_t wait_for_round = 0;   ///< of get_committed: the rounds that must be final before the answer
  bool clear = false;                 ///< of the functions that read: set the corrections to 0 after reading
  bool with_server = false;           ///< of describe: the longer answer
  bool with_stream = false;           ///< of describe: a longer one; with_server is set, too
  bool with_readout = false;          ///< of describe: a longer one; both are set, too
  bool with_gaps = false;             ///< of describe: the longest answer; all three are set, too
  std::span<const std::uint8_t> bits; ///< of enqueue; of one_shot and enqueue_readout all arrays
  bool is_padded = false;             ///< bytes follow its fields, which are ignored
  std::uint64_t content = 0;          ///< if changes_state: a hash of the function and the payload

  // Not of the payload.
  std::uint32_t request_id = 0;
  std::uint64_t timestamp = 0;
  bool while_ending = false; ///< it came after decoding_server::begin_end
};

/// Whether two requests that could be read are equal in all their bytes, and have a time: then one is a copy of the
/// other.
[[nodiscard]] bool is_copy(const wire_request &a, const wire_request &b) noexcept;

/// Whether executing the request twice differs from executing it once.
[[nodiscard]] constexpr bool changes_state(const wire_request &request) noexcept {
  return request.clear || has_counter(request.function) || request.function == wire_function::reset;
}

/// The result of read_request. `knows_decoder`: request.function and request.decoder_id are valid although the rest of
/// the request is not.
struct read_result {
  server_status status = server_status::bad_request;
  bool knows_decoder = false;
  wire_request request{};
};

/// The arrays of enqueue_readout and qec_decode_readout after the bits, which are the first of request.bits.
struct readout_arrays {
  std::span<const std::uint8_t> soft, leakage;
};
[[nodiscard]] readout_arrays arrays_of(const wire_request &request) noexcept;

/// Checks the length and the fields of a payload. bad_request: an unknown function, fewer bytes than the fields demand,
/// more bytes in a function that the existing system does not have, a mapping id that is not 0, more than
/// kMaxEnqueuedBits bits, a flag that is neither 0 nor 1. Unused bits of the last byte of an enqueue request, and bytes
/// after the fields of the other functions, are ignored.
[[nodiscard]] read_result read_request(std::uint32_t function_id, std::span<const std::uint8_t> payload) noexcept;

} // namespace cudaq::qec::realtime
