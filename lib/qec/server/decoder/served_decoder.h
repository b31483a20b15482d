// SPDX-License-Identifier: Apache-2.0
// One decoder of the running server. Its parts have one owner each:
//
//   part               file               owner
//   request_queue      request_queue.h    the threads that submit
//   decoder_turn       decoder_turn.h     the thread of the pool that has the decoder
//   locked_session     locked_session.h   who holds its mutex: the thread that serves a request, or a control thread
//   decoder_counters   decoder_counters.h the threads that read them
#pragma once

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_types.h"

#include "lib/qec/decoding/qec_expected.h"
#include "lib/qec/server/decoder/decoder_turn.h"

#include <cstdint>
#include <memory>
#include <string>

namespace cudaq::qec::realtime {

/// What the configuration says about a decoder, apart from its model. It stays the same while the server runs.
struct decoder_limits {
  std::uint64_t id = 0;
  bool sequence = true; ///< counters of enqueue ascend by 1
  /// Requests that may wait for a thread of the pool; one more is answered busy. 0: the caller of submit does the work.
  /// As many may wait for a round of a stream, at most kMaxRoundWaits and what held_slots allows.
  std::uint32_t queue_length = 0;
  /// A request that waited longer is not served; 0: without limit, but for a round kUsualRoundWaitNs.
  std::uint64_t age_limit_ns = 0;
  bool operator==(const decoder_limits &) const = default;
};

/// Its session, and the queue before it, which the threads of a pool serve.
///
/// Threads: submit by any number of threads, each sees its own requests served in order; connect, close and the
/// exchange by one control thread; all others by any thread.
class served_decoder {
public:
  /// `ticks`: for the times of its requests. Throws std::bad_alloc.
  served_decoder(const decoder_limits &limits, std::unique_ptr<decoding_unit> unit,
                 const cudaq::realtime::detail::tick_clock &ticks);
  served_decoder(const served_decoder &) = delete;
  served_decoder &operator=(const served_decoder &) = delete;
  /// Waits for the workers that are in its stream. The pool must still exist, and its threads must have ended.
  ~served_decoder() { turn_.leave_pool(); }

  /// Before the first request. The threads of the pool serve the queue, if there is one. `recorder` may be null.
  void connect(const answer_receiver &receiver, worker_pool &pool, held_slots &slots, request_recorder *recorder) {
    turn_.connect(receiver, pool, slots, recorder);
  }
  /// Its requests may wait for a round, and keep their slots meanwhile.
  [[nodiscard]] bool holds_slots() const noexcept { return is_stream_ && limits_.queue_length != 0; }
  /// The queue takes no more requests: they are answered not_ready. Those in it are still served.
  void close() { queue_.close(); }
  /// Requests that wait for a round are answered not_ready after the queue is empty.
  void end_waits() noexcept { turn_.end_waits(); }

  /// Serves a request, or takes it for later. True: `now` is its answer. False: it was taken, and the receiver gets
  /// its answer. `read` may be a request that could not be read; its place in the stream is then lost. The payload is
  /// copied; `result` must stay valid until the answer. `moments` has `arrived` and `record`; if there is an answer
  /// now, the others are added that the request has had.
  bool submit(const read_result &read, std::span<std::uint8_t> result, const cudaq_host_job_t &job, server_answer &now,
              request_moments &moments);

  /// The answer to a request after the end, which is not taken.
  [[nodiscard]] server_answer answer_at_end(const read_result &read) noexcept {
    return queue_.has_copy_of(read) ? kNoRoomForCopy : refuse(read.request.function, server_status::not_ready);
  }

  // An exchange of the decoder between shots. offer() gives the new one, which is used from the next shot on;
  // is_offer_accepted() returns whether it is in use. Then either discard_previous(), or take_back(): the new one is
  // withdrawn, or the previous one is offered again. A stream may never end: its decoder is exchanged before the next
  // stream, and is_offer_accepted() does not wait for that. So an offer may take the place of an earlier one:
  // take_back() brings it back.
  void offer(std::unique_ptr<decoding_unit> unit) { session_.offer(std::move(unit)); }
  [[nodiscard]] bool is_offer_accepted() { return session_.is_offer_accepted(); }
  void discard_previous() { session_.discard_previous(); }
  void take_back() { session_.take_back(); }

  [[nodiscard]] const decoder_limits &limits() const noexcept { return limits_; }
  /// The same for every decoder that an exchange accepts.
  [[nodiscard]] std::uint64_t num_observables() const noexcept { return num_observables_; }
  [[nodiscard]] bool is_stream() const noexcept { return is_stream_; }
  /// What a shot needs beside its bits. The same for every decoder that an exchange accepts.
  [[nodiscard]] const readout_facts &readout() const noexcept { return readout_; }
  /// Of a gap in answers, and of the longest answer with observables. The same for every decoder that an exchange
  /// accepts.
  [[nodiscard]] std::size_t gap_bytes() const noexcept { return gap_bytes_; }
  [[nodiscard]] std::uint64_t answer_bytes() const noexcept { return answer_bytes_; }
  /// The model in use, at some recent moment.
  [[nodiscard]] model_facts facts() const noexcept {
    return {num_detectors_, bits_per_shot_, num_observables_, session_.digest()};
  }
  /// Of a stream: its parts, and what its tail lacks at some recent moment.
  [[nodiscard]] stream_parts parts() const noexcept {
    return {head_detectors_, tail_detectors_, counters_.missing_tail()};
  }
  /// Of the decoder in use, at some recent moment. Does not wait for a decode.
  [[nodiscard]] std::shared_ptr<const decoder_identity> identity() const { return session_.identity(); }
  [[nodiscard]] bool same_shape(const decoding_unit &other) { return session_.same_shape(other); }
  /// Throws std::bad_alloc.
  [[nodiscard]] std::string shape_text() { return session_.shape_text(); }
  /// At some recent moment: a shot has begun and not ended, or corrections were not read since they changed.
  [[nodiscard]] bool is_unfinished() const noexcept { return session_.is_unfinished(); }
  /// Every request that was taken is answered.
  [[nodiscard]] bool idle() const noexcept { return turn_.answered() == queue_.entered(); }
  /// Requests in the queue, at some recent moment. Those that wait for a round are not in it any more.
  [[nodiscard]] std::uint64_t waiting() const noexcept { return queue_.waiting(); }
  [[nodiscard]] decoder_counts counts() const noexcept { return counters_.read(); }
  /// Requests that a thread has begun to serve: their number stays the same while one is decoded.
  [[nodiscard]] std::uint64_t begun() const noexcept { return counters_.begun(); }
  /// At this moment a thread serves a request. Never waits.
  [[nodiscard]] bool is_serving() noexcept { return session_.is_serving(); }
  /// Throws std::bad_alloc.
  [[nodiscard]] decode_failures failures() const { return counters_.failures(); }
  /// Of all requests that were served and answered, counted after the answer has left.
  [[nodiscard]] const stage_times &times() const noexcept { return counters_.times(); }

private:
  const decoder_limits limits_;
  const std::uint64_t num_observables_, num_detectors_, bits_per_shot_;
  const readout_facts readout_;
  const std::size_t gap_bytes_;
  const std::uint64_t answer_bytes_;
  const bool is_stream_;
  const std::uint64_t head_detectors_, tail_detectors_;
  decoder_counters counters_;
  request_queue queue_;
  decoder_turn turn_;
  locked_session session_; ///< the last member: the workers of its stream wake turn_ until it is destroyed
};

} // namespace cudaq::qec::realtime
