// SPDX-License-Identifier: Apache-2.0
// The state of one decoder of the server between requests, without threads and without a transport.
//
// Example: a decoder with 4 bits per shot and 1 observable.
//
//   request                          shot so far   corrections   latched   answer
//   enqueue   counter 7, bits 01     01            0             -         OK
//   enqueue   counter 8, bits 10     (decoded: 1)  1             -         OK
//   get_corrections                                1             -         OK, 01
//   enqueue   counter 10, bits 01    -             1             DROPPED   SYNDROMES_DROPPED: 9 is missing
//   get_corrections                                1             DROPPED   SYNDROMES_DROPPED
//   reset                            empty         0             -         OK
//   enqueue   counter 40, bits 01    01            0             -         OK: the first counter is any number
#pragma once

#include "lib/qec/server/decoding_unit.h"
#include "lib/qec/server/wire_requests.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

/// An answer: `status` is a server_status, or for one_shot a decode_status; `bytes` of the result were written. For
/// one_shot the negative of a server_status says that nothing was decoded.
struct server_answer {
  std::int32_t status = 0;
  std::uint32_t bytes = 0;
};

/// The answer that refuses a request of this function.
[[nodiscard]] constexpr server_answer refuse(wire_function function, server_status status) noexcept {
  const auto value = static_cast<std::int32_t>(status);
  return {function == wire_function::one_shot ? -value : value, 0};
}

/// Requests are served in the order of the calls, each completely. Not for two threads at once.
///
/// A failure that loses syndromes latches: later enqueue and get_corrections requests get the same status, and nothing
/// is decoded, until a reset. A decode that ends at its deadline does not latch: the observables of its best solution
/// so far are added, if there is one, and the next shot begins. one_shot uses the decoder only, not this state.
class decoder_session {
public:
  /// `sequence`: counters of enqueue must ascend by 1; else they are ignored.
  decoder_session(std::unique_ptr<decoding_unit> unit, bool sequence);

  /// `result`: the memory for the answer. bad_request: a shot does not end with the request that fills it, or the
  /// answer does not fit into `result`, or more observables are wanted than there are, or none.
  [[nodiscard]] server_answer serve(const wire_request &request, std::span<std::uint8_t> result) noexcept;

  /// Fails as if syndromes were lost: the stream has a gap, or a request for this decoder could not be read.
  void latch(server_status why) noexcept;

  /// No shot has begun that has not ended: the decoder may be exchanged.
  [[nodiscard]] bool between_shots() const noexcept { return filled_ == 0; }
  /// Exchanges the decoder for one of the same shape, and returns the previous one. Only between shots.
  [[nodiscard]] std::unique_ptr<decoding_unit> exchange(std::unique_ptr<decoding_unit> unit) noexcept;

  [[nodiscard]] const decoding_unit &unit() const noexcept { return *unit_; }
  /// Shots that were decoded, streams and single shots.
  [[nodiscard]] std::uint64_t shots() const noexcept { return shots_; }

private:
  server_status enqueue(const wire_request &request) noexcept;
  void append(std::span<const std::uint8_t> bits, std::uint64_t count) noexcept;
  server_status decode_shot() noexcept;
  server_answer get_corrections(const wire_request &request, std::span<std::uint8_t> result) noexcept;
  server_answer decode_one(const wire_request &request, std::span<std::uint8_t> result) noexcept;

  std::unique_ptr<decoding_unit> unit_;
  bool sequence_;
  std::optional<std::uint64_t> expected_counter_;
  server_status latched_ = server_status::ok;
  std::uint64_t filled_ = 0; ///< bits of the shot so far
  std::vector<std::uint8_t> shot_;
  std::vector<std::uint8_t> observables_; ///< of the last shot
  std::vector<std::uint8_t> corrections_; ///< XOR of the observables of all shots
  std::uint64_t shots_ = 0;
};

} // namespace cudaq::qec::realtime
