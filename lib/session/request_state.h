// SPDX-License-Identifier: Apache-2.0
// Is this request new, running, answered, refused? One answer for all servers of the library: the states of a request
// that its requester may send again, the events that change them, and what a copy of the request gets in each state.
//
// A request is known by its session (a peer, a decoder) and by its sequence number, or by its time or id. One that has
// none of these is executed as it comes, and has no state.
//
//   state       a copy gets                   begin      answer     refuse    close    forget
//   unseen      it is executed                executing  -          refused   -        -
//   executing   nothing: the answer comes (1) -          answered   refused   closed   unseen
//   answered    the same answer again         -          -          -         -        unseen
//   refused     the same refusal again        -          -          -         -        unseen
//   closed      nothing, for good             -          -          -         -        unseen
//
// -: the event changes nothing. So a request is executed once, and has one answer.
// (1): or that there is no room for this copy, if the requester must get an answer to each of its frames.
//
// Two more findings are of requests that have no record. stale: its number is before those that are remembered, so it
// may have been executed. reused: another request has its number. Both are answered with an error, and not executed.
//
// unittests/model/request_session.pml is a model of this table between a requester and a server.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cudaq::realtime::detail {

enum class request_state : std::uint8_t { unseen, executing, answered, refused, closed, stale, reused };
inline constexpr std::size_t kRequestStates = 7;

enum class request_event : std::uint8_t {
  begin,  ///< it is executed from now on
  answer, ///< it was executed, and its answer is kept
  refuse, ///< it was not executed, and will not be; the refusal is kept
  close,  ///< it ends without an answer
  forget  ///< its record is needed for another request; or it was answered BUSY, so that its copies are new
};
inline constexpr std::size_t kRequestEvents = 5;

/// What a copy of a request gets.
enum class copy_rule : std::uint8_t {
  execute, ///< the request is new
  wait,    ///< nothing: the answer of the execution is the answer of all copies
  repeat,  ///< the answer, or refusal, that was given
  drop,    ///< nothing
  reject   ///< an error: the requester must use another number
};

[[nodiscard]] constexpr request_state after(request_state state, request_event event) noexcept {
  using enum request_state;
  constexpr std::array<std::array<request_state, kRequestEvents>, kRequestStates> kNext{{
      // begin    answer     refuse     close      forget
      {executing, unseen, refused, unseen, unseen},     // unseen
      {executing, answered, refused, closed, unseen},   // executing
      {answered, answered, answered, answered, unseen}, // answered
      {refused, refused, refused, refused, unseen},     // refused
      {closed, closed, closed, closed, unseen},         // closed
      {stale, stale, stale, stale, stale},              // stale
      {reused, reused, reused, reused, reused},         // reused
  }};
  return kNext[static_cast<std::size_t>(state)][static_cast<std::size_t>(event)];
}

[[nodiscard]] constexpr copy_rule rule_for_copies(request_state state) noexcept {
  constexpr std::array<copy_rule, kRequestStates> kRules{copy_rule::execute, copy_rule::wait, copy_rule::repeat,
                                                         copy_rule::repeat,  copy_rule::drop, copy_rule::reject,
                                                         copy_rule::reject};
  return kRules[static_cast<std::size_t>(state)];
}

} // namespace cudaq::realtime::detail
