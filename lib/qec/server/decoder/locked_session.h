// SPDX-License-Identifier: Apache-2.0
// The session of one decoder under its mutex, and the exchange of its model between shots. Owner: who holds the mutex;
// that is the thread that serves a request (the one that has the decoder; without a queue, the one that submits), or
// the control thread for the few instructions of an exchange.
#pragma once

#include "lib/qec/server/decoder/decoder_counters.h"
#include "lib/qec/server/decoder/steady_by_ticks.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace cudaq::qec::realtime {

/// Threads: as each group says; all others by any thread.
class locked_session {
public:
  using clock = cudaq::realtime::detail::steady_clock;

  /// `may_wait`: a request that waits for a round is served again later; else it is refused as busy. `progressed`: the
  /// workers of a stream call it; its functions may be null. Throws std::bad_alloc.
  locked_session(std::unique_ptr<decoding_unit> unit, bool sequence, bool may_wait, const stream_listener &progressed,
                 decoder_counters &counters);
  locked_session(const locked_session &) = delete;
  locked_session &operator=(const locked_session &) = delete;
  ~locked_session() = default; ///< waits for the workers that are in its stream

  struct served_answer : server_answer {
    bool is_repeated = false; ///< it is the answer of an earlier request, of which this one is a copy
  };

  // By the thread that serves a request.
  /// Counts the answer, unless the request waits.
  served_answer serve(const read_result &read, std::span<std::uint8_t> result, clock::time_point arrival,
                      bool too_old) noexcept;
  /// The same for a request without a queue, which arrived at this moment.
  served_answer serve(const read_result &read, std::span<std::uint8_t> result, std::uint64_t arrived_ticks) noexcept;
  /// Whether serve() would answer a request that waits for a round. It reads two numbers and changes nothing.
  [[nodiscard]] bool need_not_wait(const wire_request &request) noexcept;
  /// Refuses a request that waits. Its copies may come later: all have this answer. `at_limit`: it has
  /// waited as long as it may; then the status says if its round lacks bits of the tail.
  server_answer refuse_waiting(const wire_request &request, server_status why, clock::time_point arrival,
                               bool at_limit) noexcept;
  /// Counts what the workers of a stream have done since the last call.
  void follow_workers() noexcept;

  // An exchange of the decoder between shots, by one control thread. served_decoder.h describes it.
  void offer(std::unique_ptr<decoding_unit> unit);
  [[nodiscard]] bool is_offer_accepted();
  void discard_previous();
  void take_back();

  /// A queue calls its arrive(), which does not touch what this mutex protects.
  [[nodiscard]] cudaq::realtime::detail::remembered_requests &memory() noexcept { return session_->memory(); }
  [[nodiscard]] std::uint64_t digest() const noexcept { return digest_.load(); }
  /// Does not wait for a decode.
  [[nodiscard]] std::shared_ptr<const decoder_identity> identity() const;
  [[nodiscard]] bool same_shape(const decoding_unit &other);
  /// Throws std::bad_alloc.
  [[nodiscard]] std::string shape_text();
  [[nodiscard]] bool is_unfinished() const noexcept { return unfinished_.load() != 0; }
  /// Never waits.
  [[nodiscard]] bool is_serving() noexcept;

private:
  served_answer serve_alone(const read_result &read, std::span<std::uint8_t> result, clock::time_point arrival,
                            bool too_old) noexcept;
  served_answer execute(const read_result &read, std::span<std::uint8_t> result, clock::time_point arrival,
                        bool too_old) noexcept;
  void exchange_if_possible() noexcept;
  void count_progress(std::uint64_t shots_before) noexcept;

  const bool is_stream_, may_wait_;
  const stream_listener progressed_;
  decoder_counters &counters_;
  cudaq::realtime::detail::shared_word<std::uint64_t> digest_;     ///< written under mutex_
  cudaq::realtime::detail::shared_word<std::uint32_t> unfinished_; ///< written under mutex_
  mutable std::mutex identity_mutex_;                              ///< protects identity_; never held during a decode
  std::shared_ptr<const decoder_identity> identity_;
  std::mutex mutex_; ///< protects the members below
  std::unique_ptr<decoding_unit> offered_;
  std::unique_ptr<decoding_unit> superseded_; ///< of an earlier offer to a stream that has not ended
  std::unique_ptr<decoding_unit> previous_;
  bool may_take_back_ = false;     ///< the previous decoder is kept
  steady_by_ticks arrivals_;       ///< of requests without a queue
  clock::time_point tail_arrival_; ///< of the last bits of a stream
  std::unique_ptr<decoder_session> session_;
};

} // namespace cudaq::qec::realtime
