// SPDX-License-Identifier: Apache-2.0
// The file of a server's flight recorder: the last requests with their answers. request_recorder.h writes it and
// record_reader.h reads it; docs/transport/recorder.md describes it. A head, then places of one size. Request number n
// is in place n % places, so a later request takes the place of an earlier one.
//
//   bytes of a place   content
//   0                  record_head
//   sizeof(head)       the payload of the request, as far as it was kept
//   a multiple of 8    the result, as far as it was kept
#pragma once

#include "cudaq/realtime/detail/base/shared_word.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace cudaq::qec::realtime {

inline constexpr std::array<char, 8> kRecordMagic{'C', 'U', 'D', 'A', 'Q', 'R', 'E', 'C'};
inline constexpr std::uint32_t kRecordVersion = 1;
inline constexpr std::uint32_t kRecordByteOrder = 0x01020304; ///< in the byte order of the writer
inline constexpr std::uint64_t kRecordHeadBytes = 4096;
/// Of a file. Larger ones are neither written nor read.
inline constexpr std::uint64_t kMaxRecords = std::uint64_t{1} << 24, kMaxRecordBytes = std::uint64_t{1} << 20;

/// At the begin of the file. Constant after it was written, but `left_out`.
struct record_file_head {
  std::array<char, 8> magic;
  std::uint32_t byte_order, version;
  std::uint64_t head_bytes;                  ///< where the places begin
  std::uint64_t places;                      ///< a power of two
  std::uint64_t place_bytes;                 ///< of each; a multiple of 64
  std::uint64_t boot_id;                     ///< of the server, as describe_decoder has it
  std::uint64_t start_unix_ns;               ///< CLOCK_REALTIME at the moment 0 of arrived_ns
  cudaq::realtime::detail::counter left_out; ///< requests without a place: that of their number was just in use
};
static_assert(sizeof(record_file_head) == 64);

/// What is in a place. Its mark is (number + 1) << 2 | state; 0: nothing yet.
enum class record_state : std::uint8_t {
  answered = 0,   ///< all of it
  requesting = 1, ///< the request is being written: nothing is valid
  requested = 2,  ///< the request; no answer yet
  answering = 3,  ///< the request; the answer is being written
};
constexpr std::uint64_t mark_of(std::uint64_t number, record_state state) noexcept {
  return (number + 1) << 2 | static_cast<std::uint64_t>(state);
}
constexpr std::uint64_t number_of_mark(std::uint64_t mark) noexcept { return (mark >> 2) - 1; }
constexpr record_state state_of_mark(std::uint64_t mark) noexcept { return static_cast<record_state>(mark & 3); }

struct record_head {
  /// Changed by compare-and-swap while several threads may want the place; so each place has one writer at a time.
  cudaq::realtime::detail::shared_word<std::uint64_t> mark;
  std::uint64_t arrived_ns; ///< since start_unix_ns
  std::uint64_t timestamp;  ///< of the request's frame
  std::uint32_t function_id, request_id;
  std::uint32_t payload_bytes, kept_payload; ///< of the request; of these, in the place
  std::uint32_t result_bytes, kept_result;
  std::int32_t status;
  std::uint32_t reserved;                ///< 0
  std::array<std::uint64_t, 5> stage_ns; ///< accepted, queued, taken, decoded, answered: since arrived_ns
};
static_assert(sizeof(record_head) == 96);

/// Where the result is in a place: after the payload.
constexpr std::uint64_t result_offset(std::uint32_t kept_payload) noexcept {
  return sizeof(record_head) + (std::uint64_t{kept_payload} + 7) / 8 * 8;
}

} // namespace cudaq::qec::realtime
