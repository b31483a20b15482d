// SPDX-License-Identifier: Apache-2.0
// What a server with a queue remembers of the requests of one session that have no sequence number, so that each is
// executed once and has one answer (request_state.h).
//
//   arrive   a request comes to the queue     unseen -> executing, or -> refused if there is no room
//   answer   it was executed                  -> answered
//   refuse   it has waited, and is given up   -> refused
//
// There are two lists, because a queue may hold more requests than are remembered: the last ones that came, and the
// last ones that ended. A request that has ended without a kept answer (it failed, and fails again) is in the first
// list only, and a copy of it is executed.
#pragma once

#include "lib/session/recent_requests.h"

namespace cudaq::realtime::detail {

/// arrive() has a thread of its own; the other functions have another one. It allocates in the constructor only.
class remembered_requests {
public:
  using time = recent_requests::time;
  using found = recent_requests::found;

  remembered_requests(std::uint32_t count, std::chrono::nanoseconds life, std::size_t answer_bytes)
      : arrived_(count, life, 0), ended_(count, life, answer_bytes) {}
  [[nodiscard]] static std::uint64_t bytes(std::uint32_t count, std::size_t answer_bytes) noexcept {
    return recent_requests::bytes(count, 0) + recent_requests::bytes(count, answer_bytes);
  }

  /// A request comes, and `room` says whether it may enter the queue. The state that it had before. `unseen`: it is
  /// executing or refused from now on. `executing`: this is a copy; the first one may have ended meanwhile.
  request_state arrive(const request_identity &request, bool room, time now) noexcept {
    const request_state before = arrived_.find(request, request_proof::time, now).state;
    if (before == request_state::unseen)
      arrived_.add(request, after(before, room ? request_event::begin : request_event::refuse), 0, {}, now);
    return before;
  }

  /// At the turn of a request: `answered` or `refused` if it is a copy of one that has ended, with its answer.
  [[nodiscard]] found find(const request_identity &request, request_proof wanted, time now) const noexcept {
    return ended_.find(request, wanted, now);
  }
  void answer(const request_identity &request, std::int32_t status, std::span<const std::uint8_t> bytes,
              time now) noexcept {
    ended_.add(request, after(request_state::executing, request_event::answer), status, bytes, now);
  }
  /// True: its copies get the same refusal from now on, because its time proves that they are copies. Once for each
  /// request: two equal ones would not prove that a third one is a copy.
  bool refuse(const request_identity &request, std::int32_t status, time now) noexcept {
    if (request.time == 0 || find(request, request_proof::time, now).state != request_state::unseen)
      return false;
    ended_.add(request, after(request_state::executing, request_event::refuse), status, {}, now);
    return true;
  }

private:
  recent_requests arrived_, ended_;
};

} // namespace cudaq::realtime::detail
