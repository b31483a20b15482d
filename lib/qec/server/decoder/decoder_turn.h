// SPDX-License-Identifier: Apache-2.0
// The service of one decoder's queue. Owner: the thread of the pool that has the decoder, from the pool's call of
// work() until that returns. All other threads only set words that it reads: they wake it.
#pragma once

#include "lib/qec/server/decoder/held_slots.h"
#include "lib/qec/server/decoder/locked_session.h"
#include "lib/qec/server/decoder/request_queue.h"
#include "lib/qec/server/record/request_recorder.h"
#include "lib/qec/stream/worker_pool.h"

#include <chrono>
#include <cstdint>
#include <vector>

namespace cudaq::qec::realtime {

/// How long a request may wait for a round, if there is no age limit.
inline constexpr std::uint64_t kUsualRoundWaitNs = 1'000'000'000;
/// Requests of a decoder that may wait for a round, if the queue is longer and held_slots allows it. A requester needs
/// one.
inline constexpr std::uint32_t kMaxRoundWaits = 8;
/// While a request waits in a slot that may be wanted without a word of the transport: the time between two checks.
inline constexpr std::chrono::milliseconds kSlotCheckTime{1};

/// Called once for each request that submit has taken, by a thread of the pool. Must not throw.
struct answer_receiver {
  void (*answer)(void *user, const cudaq_host_job_t &job, const server_answer &answer) = nullptr;
  void *user = nullptr;
};

/// Threads: as each group says.
class decoder_turn final : public pool_client {
public:
  /// `age_limit_ns`: 0: none. `max_waits`: requests that may wait for a round. Throws std::bad_alloc.
  decoder_turn(request_queue &queue, locked_session &session, decoder_counters &counters, std::uint64_t age_limit_ns,
               std::uint32_t max_waits);

  /// Before the first request, by the thread that starts the server. `recorder`: null if requests are not recorded.
  void connect(const answer_receiver &receiver, worker_pool &pool, held_slots &slots, request_recorder *recorder);
  /// Before its end: the pool forgets it, and the workers of its stream do not bring it back.
  void leave_pool() noexcept;

  // By the thread of the pool that has the decoder.
  /// Serves the next request of the queue, and answers requests that need not wait for their round any more. Returns
  /// the number of requests that left the queue: 0 or 1. A request with bits stays there while a stream has no room for
  /// them.
  std::uint32_t turn() noexcept;
  /// A turn, after which the decoder belongs to the pool again. True: it has work again, and is scheduled again.
  [[nodiscard]] bool work() noexcept override;

  // By any thread.
  /// There is work: a request came, or the time that the decoder named to the pool.
  void wake() noexcept override;
  /// The workers of its stream have made progress, or a slot that it holds is wanted.
  void note_progress() noexcept;
  /// Requests that wait for a round are answered not_ready after the queue is empty.
  void end_waits() noexcept;
  /// Another turn would serve a request.
  [[nodiscard]] bool can_go_on() const noexcept { return queue_.waiting() != 0 && held_.load() == 0; }
  /// Requests that came through the queue and were answered.
  [[nodiscard]] std::uint64_t answered() const noexcept { return answered_.value(); }

private:
  using clock = cudaq::realtime::detail::steady_clock;
  /// A request that waits for a round.
  struct round_wait {
    read_result read;
    std::span<std::uint8_t> result;
    cudaq_host_job_t job{};
    clock::time_point arrival, deadline;
    request_moments moments;
  };
  static constexpr std::int64_t kNoWait = INT64_MAX;

  [[nodiscard]] bool has_work() const noexcept;
  /// The requests that wait are answered not_ready in the next turn.
  [[nodiscard]] bool ends() const noexcept { return ending_.load() != 0 && queue_.waiting() == 0; }
  [[nodiscard]] server_answer wait_for_round(const request_queue::entry &entry,
                                             const request_moments &moments) noexcept;
  void answer_waits(bool new_stream) noexcept;
  void plan_next_check(clock::time_point now) noexcept;
  void finish(const cudaq_host_job_t &job, std::span<const std::uint8_t> result, const server_answer &answer,
              const request_moments &moments) noexcept;

  request_queue &queue_;
  locked_session &session_;
  decoder_counters &counters_;
  const std::uint64_t age_limit_ns_;
  answer_receiver receiver_;
  worker_pool *pool_ = nullptr;
  held_slots *slots_ = nullptr;
  request_recorder *recorder_ = nullptr;
  // Written by the thread that has the decoder.
  std::vector<round_wait> waits_;                                          ///< by arrival; no copies
  cudaq::realtime::detail::shared_word<std::int64_t> next_check_{kNoWait}; ///< at waits_: a deadline, or a slot
  cudaq::realtime::detail::shared_word<std::uint32_t> held_; ///< 1: the first request of the queue waits for news
  cudaq::realtime::detail::counter answered_;
  // Written by others.
  cudaq::realtime::detail::shared_word<std::uint32_t> ending_;
  /// 1: note_progress was called. Set before the decoder is scheduled, and cleared before it looks.
  cudaq::realtime::detail::shared_word<std::uint32_t> has_news_;
  /// 1: it is in the list of the pool, or a thread of the pool has it. Only changed by read-modify-writes: so the
  /// thread that sets it to 0 sees each request whose submit found 1.
  cudaq::realtime::detail::shared_word<std::uint32_t> scheduled_;
};

} // namespace cudaq::qec::realtime
