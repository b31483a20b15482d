// SPDX-License-Identifier: Apache-2.0
// Example: a stream of one detector a round, commit 2 and buffer 1; the head and the tail have one round each.
//
//   request                    pushed   final   answer
//   enqueue    counter 0, 00   2        0       OK
//   get_committed, wait for 2  2        0       none yet
//   enqueue    counter 1, 0    3        2       OK; and get_committed: 2 rounds final, 3 pushed, the corrections
//   begin_tail counter 2       3        2       OK
//   enqueue    counter 3, 0    4        4       OK: these were all bits of the tail
//   enqueue    counter 4, 0                     STREAM_MISALIGNED, until a reset
#pragma once

#include "lib/qec/server/session/decoder_session.h"
#include "lib/qec/stream/stream_factory.h"

namespace cudaq::qec::realtime {

/// A decoder of a stream: bits have no end until begin_tail. Without workers it decodes in the call that completes a
/// window. With workers that call returns at once, and the status of a window that fails is that of a later request.
class stream_session final : public decoder_session {
public:
  stream_session(std::unique_ptr<decoding_unit> unit, bool sequence);
  [[nodiscard]] bool may_exchange() const noexcept override;
  [[nodiscard]] stream_totals totals() const noexcept override;
  [[nodiscard]] bool has_all_bits() const noexcept override {
    return phase_ == phase::complete || phase_ == phase::ended;
  }
  void advance() noexcept override;
  [[nodiscard]] std::uint64_t missing_tail() const noexcept override {
    return phase_ == phase::tail ? unit().stream()->tail_detectors() - tail_.size() : 0;
  }
  [[nodiscard]] bool lacks_bits(const wire_request &request) const noexcept override {
    return missing_tail() != 0 && request.wait_for_round > complete_rounds(*unit().stream());
  }

private:
  enum class phase : std::uint8_t {
    rounds,   ///< head and repetitions
    tail,     ///< after begin_tail
    complete, ///< all bits have come
    ended,    ///< all rounds are final
    broken    ///< until a reset
  };

  stream_decoder &stream() noexcept { return *used_unit().stream(); }
  server_status append(const wire_request &request) noexcept override;
  server_status begin_tail() noexcept override;
  /// Appends bits, with the values and flags that come with them.
  server_status append_rounds(const wire_request &request, const stream_values &known) noexcept;
  server_status append_tail(const wire_request &request, const stream_values &known) noexcept;
  server_status finish_if_complete() noexcept;
  /// The status for the answer. Counts the failure of a window, which latches and so comes once, and a request with
  /// values that the stream refuses.
  server_status answer_status(decode_status status) noexcept;
  void restart(bool for_good) noexcept override;
  server_answer decode_one(const wire_request &request, std::span<std::uint8_t>) noexcept override {
    return refuse(request.function, server_status::bad_request);
  }
  server_answer get_committed(const wire_request &request, std::span<std::uint8_t> result) noexcept override;
  [[nodiscard]] bool has_round(const wire_request &request) const noexcept override {
    return has_round(unit().stream()->poll(), request);
  }
  static bool has_round(const stream_progress &now, const wire_request &request) noexcept {
    return now.status != decode_status::ok || now.is_final || now.committed_rounds >= request.wait_for_round;
  }
  server_status update_corrections() noexcept override;
  /// What is final, with its observables in frame_, and corrections_ from them.
  stream_progress read_frame() noexcept;
  [[nodiscard]] bool has_unread() const noexcept override;
  void corrections_read() noexcept override { read_rounds_ = framed_rounds_; }
  void corrections_cleared() noexcept override;

  phase phase_ = phase::rounds;
  bool has_values_ = false;           ///< of a readout, perhaps before the first bits
  bit_buffer tail_;                   ///< so far
  std::vector<std::uint8_t> frame_;   ///< the observables that were read last
  std::vector<std::uint8_t> cleared_; ///< those when corrections were set to 0 last
  stream_totals before_;              ///< of earlier streams
  std::uint64_t worst_lag_ = 0;
  std::uint64_t framed_rounds_ = 0; ///< those of frame_
  std::uint64_t read_rounds_ = 0;   ///< those whose corrections a requester has got
};

} // namespace cudaq::qec::realtime
