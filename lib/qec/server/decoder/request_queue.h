// SPDX-License-Identifier: Apache-2.0
// The requests before a decoder. Owners: the threads that submit put requests in; the thread that has the decoder takes
// the first one out. Example, of length 2:
//
//   event                     head   tail   in it   answer
//   submit a                  1      0      a
//   submit b                  2      0      a, b
//   submit c                  2      0      a, b    c: busy
//   a is served: front, pop   2      1      b       a
//   submit d                  3      1      b, d
#pragma once

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_types.h"
#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"

#include "lib/base/runner.h"
#include "lib/qec/server/decoder/stage_times.h"
#include "lib/qec/server/decoder/steady_by_ticks.h"
#include "lib/qec/server/session/decoder_session.h"

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

/// The answer to a copy of a request that is not answered yet: there is no room for this frame. So a requester that
/// repeats a request holds one place, and one slot of the transport.
inline constexpr server_answer kNoRoomForCopy{CUDAQ_RPC_ERR_BUSY, 0};

/// Bytes of a queue of this length, if requests have at most `max_bytes` after their fields.
[[nodiscard]] std::uint64_t queue_bytes(std::uint32_t queue_length, std::uint64_t max_bytes) noexcept;

/// Threads: enter by any number of threads, close by one control thread, front and pop by the thread that has the
/// decoder, the others by any thread.
class request_queue {
public:
  using clock = cudaq::realtime::detail::steady_clock;
  struct entry {
    read_result read;
    std::vector<std::uint8_t> bits; ///< what read.request.bits points to
    std::span<std::uint8_t> result;
    cudaq_host_job_t job{};
    clock::time_point arrival;
    request_moments moments; ///< up to `queued`
  };

  /// `max_bytes`: of one request, after its fields. Throws std::bad_alloc.
  request_queue(std::uint32_t length, std::uint64_t max_bytes);

  /// `waits`: the request is in the queue, and its bits are copied. Else its answer: kNoRoomForCopy if a copy of it is
  /// among the last requests there, not_ready after close, busy if the queue is full. `memory`: that of the session;
  /// only here its arrive() is called. `times`: for the moments after `moments.arrived`.
  server_answer enter(const read_result &read, std::span<std::uint8_t> result, const cudaq_host_job_t &job,
                      cudaq::realtime::detail::remembered_requests &memory, const stage_times &times,
                      request_moments moments);
  /// A copy of the request is in the queue: it is served later, or at this moment.
  [[nodiscard]] bool has_copy_of(const read_result &read) noexcept;
  /// From now on the queue takes no requests. Those in it are still served.
  void close();

  /// The first request, or null. It stays valid, and in its place, until pop.
  [[nodiscard]] entry *front() noexcept;
  void pop() noexcept { tail_.store(tail_.peek() + 1); }

  /// Requests in the queue, at some recent moment.
  [[nodiscard]] std::uint64_t waiting() const noexcept;
  /// Requests that have entered since start.
  [[nodiscard]] std::uint64_t entered() const noexcept { return head_.load(); }

private:
  /// `among`: of the last requests of the queue, at most this number.
  [[nodiscard]] bool finds_copy_of(const read_result &read, std::uint64_t among) const noexcept;

  /// Taken by the threads that submit; the thread that has the decoder needs none. It protects arrive() of the memory.
  std::mutex mutex_;
  bool closed_ = false;                                      ///< protected by mutex_
  steady_by_ticks arrivals_;                                 ///< protected by mutex_
  std::vector<entry> entries_;                               ///< request n is in entries_[n % size]
  cudaq::realtime::detail::shared_word<std::uint64_t> head_; ///< requests that came in; written with mutex_ held
  cudaq::realtime::detail::shared_word<std::uint64_t> tail_; ///< requests that left; written by pop only
};

} // namespace cudaq::qec::realtime
