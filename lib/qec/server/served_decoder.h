// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_types.h"

#include "lib/base/runner.h"
#include "lib/qec/decoding/qec_expected.h"
#include "lib/qec/server/decoder_pool.h"
#include "lib/qec/server/latency_counters.h"
#include "lib/qec/server/session/decoder_session.h"

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace cudaq::qec::realtime {

/// What the configuration says about a decoder, apart from its model. It stays the same while the server runs.
struct decoder_limits {
  std::uint64_t id = 0;
  bool sequence = true; ///< counters of enqueue ascend by 1
  /// Requests that may wait for a thread of the pool; one more is answered busy. 0: the caller of submit does the work.
  /// As many may wait for a round of a stream.
  std::uint32_t queue_length = 0;
  std::uint64_t age_limit_ns = 0; ///< a request that waited longer is not served; 0: without limit, but see below
  bool operator==(const decoder_limits &) const = default;
};

/// How long a request may wait for a round, if there is no age limit.
inline constexpr std::uint64_t kUsualRoundWaitNs = 1'000'000'000;

/// Counts of a decoder since start. `by_status`: answers of all functions. The status of a one_shot is counted as the
/// one that means the same in the other functions (counted_status).
struct decoder_counts {
  std::uint64_t requests = 0, shots = 0, too_old = 0, exchanges = 0;
  std::array<std::uint64_t, kServerStatuses> by_status{};
  stream_totals stream;
  std::uint64_t tail_ns = 0, worst_tail_ns = 0; ///< from the arrival of a stream's last bits to its end: sum, most
  deadline_counts deadlines;                    ///< of decodes of shots and of windows, if they have a deadline
  std::uint64_t repeated = 0;                   ///< requests that were sent again, and got their first answer
};

/// Decodes that failed, and why the last one did.
struct decode_failures {
  std::uint64_t count = 0;
  std::string last; ///< decoder_session::last_failure()
};

/// Called once for each request that submit has taken, by a thread of the pool. Must not throw.
struct answer_receiver {
  void (*answer)(void *user, const cudaq_host_job_t &job, const server_answer &answer) = nullptr;
  void *user = nullptr;
};

/// Bytes of a queue of this length, if requests have at most `bits` bits.
[[nodiscard]] std::uint64_t queue_bytes(std::uint32_t queue_length, std::uint64_t bits) noexcept;

/// One decoder of the running server: its session, and the queue before it, which the threads of a pool serve.
///
/// Threads: submit by any number of threads, each sees its own requests served in order; turn and unschedule by the
/// thread of the pool that has the decoder; offer, settle, take_back and close by one control thread; counts by any
/// thread.
class served_decoder {
public:
  /// Throws std::bad_alloc.
  served_decoder(const decoder_limits &limits, std::unique_ptr<decoding_unit> unit);
  served_decoder(const served_decoder &) = delete;
  served_decoder &operator=(const served_decoder &) = delete;
  ~served_decoder(); ///< waits for the workers that are in its stream; the pool must still exist

  /// Before the first request. The threads of the pool serve the queue, if there is one.
  void connect(const answer_receiver &receiver, decoder_pool &pool);
  /// The queue takes no more requests: they are answered not_ready. Those in it are still served.
  void close();
  /// Requests that wait for a round are answered not_ready after the queue is empty. By any thread.
  void end_waits() noexcept;

  /// Serves the next request of the queue, and answers requests that need not wait for their round any more. Returns
  /// the number of requests that left the queue: 0 or 1. A request with bits stays there while a stream has no room for
  /// them.
  std::uint32_t turn() noexcept;
  /// Another turn would serve a request.
  [[nodiscard]] bool can_go_on() const noexcept { return waiting() != 0 && held_.load() == 0; }
  /// The thread of the pool gives the decoder back. True: it has work again, and is scheduled again.
  [[nodiscard]] bool unschedule() noexcept;
  /// The time that the decoder named to the pool has come.
  void wake() noexcept;

  /// Serves a request, or takes it for later. True: `now` is its answer. False: it was taken, and the receiver gets
  /// its answer. `read` may be a request that could not be read; its place in the stream is then lost. The payload is
  /// copied; `result` must stay valid until the answer.
  bool submit(const read_result &read, std::span<std::uint8_t> result, const cudaq_host_job_t &job, server_answer &now);

  // An exchange of the decoder between shots. offer() gives the new one, which is used from the next shot on;
  // settle() returns whether it is in use. Then either discard_previous(), or take_back(): the new one is withdrawn,
  // or the previous one is offered again. A stream may never end: its decoder is exchanged before the next stream,
  // and settle() does not wait for that. So an offer may take the place of an earlier one: take_back() brings it back.
  void offer(std::unique_ptr<decoding_unit> unit);
  [[nodiscard]] bool settle();
  void discard_previous();
  void take_back();

  [[nodiscard]] const decoder_limits &limits() const noexcept { return limits_; }
  /// The same for every decoder that an exchange accepts.
  [[nodiscard]] std::uint64_t num_observables() const noexcept { return num_observables_; }
  /// The model in use, at some recent moment.
  [[nodiscard]] model_facts facts() const noexcept;
  /// Of the decoder in use, at some recent moment. Does not wait for a decode.
  [[nodiscard]] std::shared_ptr<const decoder_identity> identity() const;
  [[nodiscard]] bool is_stream() const noexcept { return is_stream_; }
  [[nodiscard]] bool same_shape(const decoding_unit &other);
  /// Throws std::bad_alloc.
  [[nodiscard]] std::string shape_text();
  /// At some recent moment: a shot has begun and not ended, or corrections were not read since they changed.
  [[nodiscard]] bool is_unfinished() const noexcept { return unfinished_.load() != 0; }
  /// Every request that was taken is answered.
  [[nodiscard]] bool idle() const noexcept { return answered_.value() == head_.load(); }
  /// Requests in the queue, at some recent moment. Those that wait for a round are not in it any more.
  [[nodiscard]] std::uint64_t waiting() const noexcept;
  [[nodiscard]] decoder_counts counts() const noexcept;
  /// Requests that a thread has begun to serve: their number stays the same while one is decoded.
  [[nodiscard]] std::uint64_t begun() const noexcept { return begun_.value(); }
  /// At this moment a thread serves a request. Never waits, by any thread.
  [[nodiscard]] bool is_serving() noexcept;
  /// By any thread. Throws std::bad_alloc.
  [[nodiscard]] decode_failures failures() const;
  /// Of all requests that were served, from submit to their answer.
  [[nodiscard]] latency_counters::counts latency() const noexcept { return latency_.read(); }

private:
  using clock = cudaq::realtime::detail::steady_clock;
  struct entry {
    read_result read;
    std::vector<std::uint8_t> bits;
    std::span<std::uint8_t> result;
    cudaq_host_job_t job{};
    clock::time_point arrival;
  };
  friend std::uint64_t queue_bytes(std::uint32_t queue_length, std::uint64_t bits) noexcept;

  /// A request that waits for a round.
  struct round_wait {
    read_result read;
    std::span<std::uint8_t> result;
    cudaq_host_job_t job{};
    clock::time_point arrival, deadline;
  };
  static constexpr std::int64_t kNoWait = INT64_MAX;

  server_answer enter(const read_result &read, std::span<std::uint8_t> result, const cudaq_host_job_t &job);
  server_answer refuse_wait(const wire_request &request, server_status why, clock::time_point arrival) noexcept;
  server_answer serve(const read_result &read, std::span<std::uint8_t> result, clock::time_point arrival,
                      bool too_old) noexcept;
  server_answer serve_locked(const read_result &read, std::span<std::uint8_t> result, clock::time_point arrival,
                             bool too_old) noexcept;
  void exchange_if_possible() noexcept;
  void listen() noexcept;
  void follow_workers() noexcept;
  void publish(std::uint64_t shots_before) noexcept;
  [[nodiscard]] bool has_work() const noexcept;
  void answer_waits(bool new_stream) noexcept;
  void finish(const cudaq_host_job_t &job, const server_answer &answer) noexcept;
  void count(wire_function function, const server_answer &answer) noexcept;
  void publish_failures() noexcept;
  void record_latency(clock::time_point arrival) noexcept { latency_.record(ns_since(arrival)); }
  static std::uint64_t ns_since(clock::time_point begin) noexcept {
    return static_cast<std::uint64_t>((clock::now() - begin) / std::chrono::nanoseconds(1));
  }

  const decoder_limits limits_;
  const std::uint64_t num_observables_, num_detectors_, bits_per_shot_;
  const bool is_stream_;
  cudaq::realtime::detail::shared_word<std::uint64_t> digest_; ///< written under session_mutex_
  mutable std::mutex identity_mutex_;                          ///< never held during a decode
  std::shared_ptr<const decoder_identity> identity_;
  answer_receiver receiver_;
  decoder_pool *pool_ = nullptr;
  std::mutex session_mutex_; ///< protects the six members below
  std::unique_ptr<decoder_session> session_;
  std::unique_ptr<decoding_unit> offered_;
  std::unique_ptr<decoding_unit> superseded_; ///< of an earlier offer to a stream that has not ended
  std::unique_ptr<decoding_unit> previous_;
  bool may_take_back_ = false;     ///< the previous decoder is kept
  clock::time_point tail_arrival_; ///< of the last bits of a stream

  // The queue: request n is in entries_[n % size]. head_ counts the requests that came in, tail_ those that left.
  std::mutex queue_mutex_; ///< taken by the threads that submit; a thread of the pool needs none
  bool closed_ = false;    ///< protected by queue_mutex_
  /// The last requests that change the state, as they came, and which of them found the queue full. Of these no copy
  /// comes in later; of the others each may. Protected by queue_mutex_.
  replay_cache arrivals_{0};
  std::vector<entry> entries_;
  cudaq::realtime::detail::shared_word<std::uint64_t> head_, tail_;
  std::vector<round_wait> waits_; ///< by arrival. Only the thread of the pool that has the decoder uses it
  cudaq::realtime::detail::shared_word<std::int64_t> first_deadline_{kNoWait}; ///< of waits_
  cudaq::realtime::detail::shared_word<std::uint32_t> ending_;
  cudaq::realtime::detail::shared_word<std::uint32_t> unfinished_; ///< written under session_mutex_
  /// 1: the workers of the stream have news. Set before the decoder is scheduled, and cleared before it looks.
  cudaq::realtime::detail::shared_word<std::uint32_t> has_news_;
  cudaq::realtime::detail::shared_word<std::uint32_t> held_; ///< 1: the first request of the queue waits for news
  cudaq::realtime::detail::counter requests_, shots_, too_old_, exchanges_, answered_, tail_ns_;
  cudaq::realtime::detail::counter repeated_, begun_;
  cudaq::realtime::detail::counter deadline_met_, deadline_missed_, deadline_late_;
  cudaq::realtime::detail::shared_word<std::uint64_t> pushed_, committed_, lag_, worst_lag_, worst_tail_ns_;
  std::array<cudaq::realtime::detail::counter, kServerStatuses> by_status_;
  mutable std::mutex failure_mutex_; ///< protects the two members below
  std::uint64_t failures_ = 0;
  std::array<char, 512> last_failure_{};
  latency_counters latency_;
  /// 1: it is in the list of the pool, or a thread of the pool has it. Only changed by read-modify-writes: so the
  /// thread that sets it to 0 sees each request whose submit found 1.
  cudaq::realtime::detail::shared_word<std::uint32_t> scheduled_;
};

} // namespace cudaq::qec::realtime
