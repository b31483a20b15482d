// SPDX-License-Identifier: Apache-2.0
// The state of one decoder of the server between requests, without threads and without a transport: what shots and
// streams have in common.
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
//   enqueue   counter 40, bits 01    01            0             -         OK: after a reset any number begins
//   the same, sent again             01            0             -         OK: it is known, and not executed
#pragma once

#include "lib/qec/server/session/decoding_unit.h"
#include "lib/qec/server/session/wire_requests.h"
#include "lib/session/remembered_requests.h"

#include <array>
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
  /// No answer yet, and the request had no effect. A reading one: the round that it waits for is not final. One with
  /// bits: the queue of the stream's workers is full. It is served again after further rounds are final.
  bool waits = false;
};

/// The answer that refuses a request of this function.
[[nodiscard]] constexpr server_answer refuse(wire_function function, server_status status) noexcept {
  const auto value = static_cast<std::int32_t>(status);
  return {function == wire_function::one_shot ? -value : value, 0};
}

/// The status under which an answer is counted. Of one_shot the status on the wire is a decode_status, or the negative
/// of a server_status.
[[nodiscard]] server_status counted_status(wire_function function, std::int32_t status) noexcept;

/// By which its copies are known.
[[nodiscard]] inline cudaq::realtime::detail::request_identity identity_of(const wire_request &request) noexcept {
  return {request.request_id, request.timestamp, request.content};
}

/// Of all streams of a decoder since start. All 0 for decoders of shots.
struct stream_totals {
  std::uint64_t pushed = 0, committed = 0; ///< rounds
  std::uint64_t lag = 0, worst_lag = 0;    ///< rounds that were pushed and are not final: now, and the most
  deadline_counts deadlines{};             ///< of windows, if their decoder has a deadline
  std::uint64_t missing_tail = 0;          ///< of the present stream, after begin_tail: bits that have not come
};

/// The soft values and flags of the present shot that have come.
struct readout_so_far {
  std::uint64_t values = 0, flags = 0;
  soft_kind kind = soft_kind::f32; ///< of the values
};

/// Requests are served in the order of the calls, each completely. Not for two threads at once.
///
/// A request that changes the state is executed once, however often it comes: a queue asks memory() as it comes, and
/// the server asks answer_again at its turn. Other requests are executed as they come.
///
/// A failure that loses syndromes latches: later requests of all functions but reset and one_shot get the same status,
/// and nothing is decoded, until a reset. A decode that ends at its deadline does not latch: the observables of its
/// best solution so far are added, if there is one, and the next shot begins. one_shot uses the decoder only, not this
/// state.
class decoder_session {
public:
  using remembered_requests = cudaq::realtime::detail::remembered_requests;
  using time = remembered_requests::time;

  /// `sequence`: counters must ascend by 1; else they are ignored.
  decoder_session(std::unique_ptr<decoding_unit> unit, bool sequence);
  virtual ~decoder_session() = default;
  decoder_session(const decoder_session &) = delete;
  decoder_session &operator=(const decoder_session &) = delete;

  /// What is remembered of the requests that change the state. A queue before the session calls its arrive(); the rest
  /// belongs to the session.
  [[nodiscard]] remembered_requests &memory() noexcept { return memory_; }
  /// The answer to a request that is sent again: that of its first execution, in `result`. Nothing: it is another
  /// request, to be served. `now`: the time of its arrival.
  [[nodiscard]] std::optional<server_answer> answer_again(const wire_request &request, std::span<std::uint8_t> result,
                                                          time now) const noexcept;
  /// `result`: the memory for the answer. bad_request: a function that this kind of decoder does not have; an answer
  /// that does not fit into `result`; more observables than there are, or none. syndromes_dropped: the requester has
  /// sent bits before this decoder began; it sees that by a first counter above 1, and by get_corrections before any
  /// bits and any reset.
  [[nodiscard]] server_answer serve(const wire_request &request, std::span<std::uint8_t> result, time now) noexcept;

  /// Whether serve() would answer a request that waits: its round is final or does not come, or a failure has latched.
  [[nodiscard]] bool need_not_wait(const wire_request &request) const noexcept {
    return latched_ != server_status::ok || has_round(request);
  }

  /// Of a stream whose tail has begun: bits of it that have not come.
  [[nodiscard]] virtual std::uint64_t missing_tail() const noexcept { return 0; }

  /// The answer to a request that was not executed, and will not be: copies of it that are known by their time get the
  /// same one. So its requester may send it as another request.
  [[nodiscard]] server_answer refuse_copies(const wire_request &request, server_status why, time now) noexcept;

  /// Whether the next request of a sequence is executed after an answer with this status.
  [[nodiscard]] bool goes_on_after(server_status status) const noexcept;

  /// Fails as if syndromes were lost: the stream has a gap, or a request for this decoder could not be read.
  void latch(server_status why) noexcept;

  /// No shot, and no stream, has begun that has not ended: the decoder may be exchanged.
  [[nodiscard]] virtual bool may_exchange() const noexcept = 0;
  /// Exchanges the decoder for one of the same shape, and returns the previous one.
  [[nodiscard]] std::unique_ptr<decoding_unit> exchange(std::unique_ptr<decoding_unit> unit) noexcept;

  /// Of a stream: after the constructor and after each exchange, before the first bits.
  void listen(const stream_listener &listener) noexcept { unit_->listen(listener); }

  [[nodiscard]] const decoding_unit &unit() const noexcept { return *unit_; }
  /// Shots that were decoded, whole ones and parts; streams whose rounds were all final at the last advance().
  [[nodiscard]] std::uint64_t shots() const noexcept { return shots_; }
  /// Decodes of shots and windows without a solution, except of shots at their deadline, with those whose readout was
  /// refused, and those of qec_decode whose shot or room for the answer has another size; those of them that did not
  /// converge; and why the last one failed: the text of its status, and the decoder's fault(), or both sizes. After
  /// another failure the text is not that of one that did not converge.
  [[nodiscard]] std::uint64_t failures() const noexcept { return failures_; }
  [[nodiscard]] std::uint64_t not_converged() const noexcept { return not_converged_; }
  [[nodiscard]] const char *last_failure() const noexcept { return last_failure_.data(); }
  /// It waits for a round that cannot become final before further bits of the tail come.
  [[nodiscard]] virtual bool lacks_bits(const wire_request &) const noexcept { return false; }
  /// All bits of a stream have come.
  [[nodiscard]] virtual bool has_all_bits() const noexcept { return false; }
  /// A shot has begun and not ended, or corrections were not read since they changed, or will change without further
  /// bits.
  [[nodiscard]] bool is_unfinished() const noexcept {
    return latched_ == server_status::ok && (inside_shot() || has_unread());
  }
  /// Takes notice of what the workers of a stream have done.
  virtual void advance() noexcept {}
  [[nodiscard]] virtual stream_totals totals() const noexcept { return {}; }

protected:
  /// Appends bits. Any status but ok, busy and deadline latches. busy: nothing was appended, the request waits.
  virtual server_status append(const wire_request &request) noexcept = 0;
  virtual server_status begin_tail() noexcept { return server_status::bad_request; }
  /// Forgets all bits. `for_good`: after a latch; else a new shot or stream begins.
  virtual void restart(bool for_good) noexcept = 0;
  [[nodiscard]] virtual bool inside_shot() const noexcept { return false; }
  [[nodiscard]] virtual bool has_unread() const noexcept = 0;
  virtual server_answer decode_one(const wire_request &request, std::span<std::uint8_t> result) noexcept = 0;
  virtual server_answer get_committed(const wire_request &request, std::span<std::uint8_t>) noexcept {
    return refuse(request.function, server_status::bad_request);
  }
  /// get_committed would answer: the round is final, or will never be.
  [[nodiscard]] virtual bool has_round(const wire_request &) const noexcept { return true; }
  /// Before corrections_ is read. Any status but ok latches.
  virtual server_status update_corrections() noexcept { return server_status::ok; }
  virtual void corrections_read() noexcept = 0;
  /// After corrections_ was set to 0.
  virtual void corrections_cleared() noexcept {}

  /// Whether the request wants observables that there are, and `room` bytes take them.
  [[nodiscard]] bool can_answer(const wire_request &request, std::size_t room) const noexcept;
  server_answer get_corrections(const wire_request &request, std::span<std::uint8_t> result) noexcept;
  /// The answer with corrections_; the request and `result` were checked.
  server_answer give_corrections(const wire_request &request, std::span<std::uint8_t> result) noexcept;
  decoding_unit &used_unit() noexcept { return *unit_; }
  /// Counts a decode that failed; of a race, each member that failed. Before the next one.
  void note_failure(decode_status status) noexcept;
  /// Counts a request whose soft values or flags are not those that come next; `facts`: what the decoder takes.
  void note_refused_readout(const wire_request &request, const readout_facts &facts,
                            const readout_so_far &before = {}) noexcept;
  /// Counts a qec_decode whose shot, or room for the answer, has another size. `has`: "the shot has".
  void note_other_size(const char *has, std::uint64_t bytes, std::uint64_t needed) noexcept;
  /// Counts the members of a race that failed where another one has answered. Before the next decode.
  void note_member_faults() noexcept;

  std::vector<std::uint8_t> corrections_; ///< the sum (XOR) of the observables
  /// Of a decoder with gaps: of each observable the gap of the sum. Shots are independent, so its lightest other value
  /// is that in which one shot has its other value: the gap is the smallest one of the shots, and NaN if one is NaN.
  std::vector<double> gaps_;
  std::uint64_t shots_ = 0;

private:
  server_answer execute(const wire_request &request, std::span<std::uint8_t> result) noexcept;
  /// Appends the bits of a request, or begins the tail, if its counter is the one that comes next.
  server_status apply_if_next(const wire_request &request) noexcept;
  void reset() noexcept;
  void clear_corrections() noexcept;
  /// Neither bits nor a reset have come since the start.
  [[nodiscard]] bool is_untouched() const noexcept { return !was_reset_ && !expected_counter_; }

  /// After take_member_faults: why the last member failed, also where none of the others has a solution.
  void keep_fault_of_race() noexcept;

  std::unique_ptr<decoding_unit> unit_;
  const bool sequence_;
  bool was_reset_ = false;
  std::uint64_t failures_ = 0, not_converged_ = 0;
  std::array<char, 512> last_failure_{};
  std::optional<std::uint64_t> expected_counter_;
  std::optional<std::uint64_t> refused_counter_; ///< the last one of refuse_copies
  server_status latched_ = server_status::ok;
  remembered_requests memory_;
};

/// Bytes of what a session remembers to answer repeated requests. `gap_bytes`: of a gap in an answer, or 0.
[[nodiscard]] std::uint64_t replay_bytes(std::uint64_t num_observables, std::size_t gap_bytes = 0) noexcept;

/// Writes gaps as they are on the wire. `result`: 4 bytes for each.
void write_gaps(std::span<const double> gaps, std::span<std::uint8_t> result) noexcept;

/// Bits after each other, in packed bytes.
class bit_buffer {
public:
  explicit bit_buffer(std::uint64_t bits) : bytes_(static_cast<std::size_t>((bits + 7) / 8) + 1) {}
  /// Adds bits; there must be room for them.
  void append(std::span<const std::uint8_t> bits, std::uint64_t count) noexcept;
  void clear() noexcept;
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// All bytes; unused bits are 0.
  [[nodiscard]] std::span<const std::uint8_t> bytes() const noexcept {
    return std::span(bytes_).first(bytes_.size() - 1); // append() writes one byte after the bits
  }

private:
  std::vector<std::uint8_t> bytes_;
  std::uint64_t size_ = 0;
};

/// Makes the session for shots or for streams, as the unit demands. Throws std::bad_alloc.
[[nodiscard]] std::unique_ptr<decoder_session> make_session(std::unique_ptr<decoding_unit> unit, bool sequence);

} // namespace cudaq::qec::realtime
