// SPDX-License-Identifier: Apache-2.0
// How one request is seen through, up to its publication: by one lane, or by the whole team.
#pragma once

#include "kernels/loop_desk.h"

namespace cudaq::realtime::detail {

template <class Team, class Transport, class Handlers, class Crew>
class request_server {
protected:
  using message = typename Transport::message;

  CUDAQ_REALTIME_HOST_DEVICE request_server(const dispatch_params &params, loop_report *report, loop_desk &desk,
                                            const Transport &transport, const Handlers &handlers, Crew &crew)
      : p_(params), desk_(desk), transport_(transport), handlers_(handlers), crew_(crew),
        counters_(counts_of(handlers, desk), report, params.caller_stats, Handlers::kDefers),
        staged_out_(transport.slot_size() <= desk.stage_bytes) {}

  /// What one lane did with a request.
  struct outcome {
    verdict what = verdict::serve;
    bool left = false;  ///< nothing: the frame is not on the desk as a whole, or it takes the team
    bool later = false; ///< accepted; somebody else will answer it
    std::int32_t status = 0;
    std::uint32_t long_bytes = 0; ///< the answer is framed at `out`, and the team has to copy it
    CUDAQ_REALTIME_HOST_DEVICE bool answered() const { return is_answered(what); }
  };
  CUDAQ_REALTIME_HOST_DEVICE static bool is_answered(verdict what) {
    return what == verdict::serve || what == verdict::answer;
  }

  /// Most requests name the same function as the one before.
  CUDAQ_REALTIME_HOST_DEVICE judgement judge(const request &r, bool expected, const std::uint8_t *payload) {
    if (likely(r.function_id == known_id_ && r.arg_len < known_end_ && r.magic == CUDAQ_RPC_MAGIC_REQUEST && expected))
      return {verdict::serve, CUDAQ_RPC_OK, known_route_};
    const judgement j = handlers_.judge(r, expected, transport_.max_payload(), payload, p_.rules);
    if (j.what == verdict::serve && !p_.rules.check_schema && !by_key(j.route)) {
      known_id_ = r.function_id;
      known_route_ = j.route;
      known_end_ = transport_.max_payload() + 1;
    }
    return j;
  }

  /// One lane by itself sees a request through, up to its publication. `fetched` bytes of it stand in `bytes`; the
  /// answer is put together at `out`, which may be the slot itself.
  CUDAQ_REALTIME_HOST_DEVICE outcome serve_alone(const message &m, bool expected, const std::uint8_t *bytes,
                                                 std::uint32_t fetched, std::uint8_t *out) {
    const request r = read_header<request>(bytes);
    const judgement j = judge(r, expected, bytes + CUDAQ_RPC_HEADER_SIZE);
    outcome o{j.what, false, false, j.status, 0};
    std::uint32_t result_len = 0;
    if (j.what == verdict::serve) {
      if (defers(j.route)) {
        accept(m, j.route);
        o.later = true;
        return o;
      }
      if (unlikely(CUDAQ_RPC_HEADER_SIZE + r.arg_len > fetched)) {
        o.left = true;
        return o;
      }
      if (Handlers::kDefers) // here only: nothing is posted in front of a launch
        counters_.post_busy(transport_.number(m));
      std::uint32_t &length = desk_.result_len[Team::lane()];
      length = 0;
      o.status = handlers_.call(j.route, bytes + CUDAQ_RPC_HEADER_SIZE, out + CUDAQ_RPC_HEADER_SIZE, r.arg_len,
                                transport_.max_payload(), &length);
      result_len = length;
      o.status = settle(j.route, o.status, result_len);
    } else if (j.what != verdict::answer) {
      return o;
    }
    std::uint8_t *const to = transport_.response(m);
    const std::uint32_t whole = CUDAQ_RPC_HEADER_SIZE + result_len;
    if (out != to && whole <= kLookBytes) {
      write_brief(to, r, o.status, result_len, out + CUDAQ_RPC_HEADER_SIZE);
      return o;
    }
    write_response(out, r, o.status, result_len);
    if (out != to)
      o.long_bytes = whole;
    return o;
  }

  /// Writes a frame of at most kLookBytes whose result stands at `result`: in whole words where they stay inside the slot.
  CUDAQ_REALTIME_HOST_DEVICE void write_brief(std::uint8_t *to, const request &r, std::int32_t status,
                                              std::uint32_t result_len, const std::uint8_t *result) const {
    const std::uint32_t rounded = round16(CUDAQ_RPC_HEADER_SIZE + result_len);
    if (unlikely(!transport_.wide() || rounded > transport_.slot_size())) {
      write_response(to, r, status, result_len);
      copy_bytes(to + CUDAQ_RPC_HEADER_SIZE, result, result_len, false, 0, 1);
      return;
    }
    word16 first{{CUDAQ_RPC_MAGIC_RESPONSE, static_cast<std::uint32_t>(status), result_len, r.request_id}}, second;
    std::memcpy(&second, &r.ptp_timestamp, 8);
    std::memcpy(second.part + 2, __builtin_assume_aligned(result, 8), 8);
    auto *const words = reinterpret_cast<word16 *>(to);
    words[0] = first;
    words[1] = second;
    for (std::uint32_t at = 2 * sizeof(word16); at < rounded; at += sizeof(word16))
      words[at / sizeof(word16)] = *reinterpret_cast<const word16 *>(result + (at - CUDAQ_RPC_HEADER_SIZE));
  }

  /// What became of a request.
  enum class fate : std::uint32_t { dropped, answered, later };

  /// The whole team sees one request through, up to its publication.
  CUDAQ_REALTIME_HOST_DEVICE fate serve_together(const message &m, bool expected, std::uint8_t *bytes,
                                                 std::uint32_t fetched) {
    const request r = read_header<request>(bytes);
    const judgement j = judge(r, expected, bytes + CUDAQ_RPC_HEADER_SIZE);
    Team::sync(); // everybody has the header: desk_.in may be written
    if (!is_answered(j.what)) {
      counters_.count(j.what, expected, 0);
      return fate::dropped;
    }
    if (j.what == verdict::serve && defers(j.route)) {
      if (Team::lane() == 0)
        accept(m, j.route);
      counters_.count_accepted(expected);
      return fate::later;
    }
    std::uint8_t *const out = staged_out_ ? crew_.out(desk_.out) : transport_.response(m);
    std::int32_t status = j.status;
    std::uint32_t result_len = 0;
    if (j.what == verdict::serve) {
      const std::uint32_t needed = CUDAQ_RPC_HEADER_SIZE + r.arg_len;
      const std::uint8_t *in = bytes;
      if (needed > fetched) { // whole words: the stride of a slot is a multiple of them
        in = needed <= desk_.stage_bytes ? desk_.in : transport_.request(m);
        if (in == desk_.in)
          crew_.copy(desk_.in, transport_.request(m), transport_.wide() ? round16(needed) : (needed + 7) & ~7u,
                     transport_.wide());
        Team::sync();
      }
      if (Team::lane() == 0)
        counters_.post_busy(transport_.number(m));
      status = crew_.call(
          handlers_, {j.route, r.arg_len, transport_.max_payload(), in, out, needed <= desk_.stage_bytes}, result_len);
      status = settle(j.route, status, result_len);
    }
    if (Team::lane() == 0)
      write_response(out, r, status, result_len);
    counters_.count(j.what, expected, status);
    Team::sync();
    if (staged_out_)
      crew_.copy(transport_.response(m), out, CUDAQ_RPC_HEADER_SIZE + result_len, transport_.wide());
    Team::sync();
    return fate::answered;
  }

  /// An answer that the ring or the schema does not allow becomes a protocol error.
  CUDAQ_REALTIME_HOST_DEVICE std::int32_t settle(std::uint32_t route, std::int32_t status,
                                                 std::uint32_t &result_len) const {
    if (result_len > transport_.max_payload())
      status = CUDAQ_RPC_ERR_RESULT_TOO_LARGE;
    else if (p_.rules.check_schema && status == CUDAQ_RPC_OK && handlers_.contradicts(route, result_len))
      status = CUDAQ_RPC_ERR_SCHEMA_MISMATCH;
    else
      return status;
    result_len = 0;
    return status;
  }

  const dispatch_params &p_;
  loop_desk &desk_;
  Transport transport_;
  const Handlers &handlers_;
  Crew &crew_;
  loop_counters<Team> counters_;
  const bool staged_out_; ///< answers are put together on the desk

private:
  CUDAQ_REALTIME_HOST_DEVICE static loop_report &counts_of(const Handlers &handlers, loop_desk &desk) {
    if constexpr (Handlers::kDefers)
      return handlers.counts();
    else
      return desk.counts;
  }
  CUDAQ_REALTIME_HOST_DEVICE bool defers([[maybe_unused]] std::uint32_t route) const {
    if constexpr (Handlers::kDefers)
      return handlers_.defers(route);
    else
      return false;
  }
  /// Other requests of the function may take another route.
  CUDAQ_REALTIME_HOST_DEVICE bool by_key([[maybe_unused]] std::uint32_t route) const {
    if constexpr (Handlers::kDefers)
      return handlers_.by_key(route);
    else
      return false;
  }
  CUDAQ_REALTIME_HOST_DEVICE void accept([[maybe_unused]] const message &m, [[maybe_unused]] std::uint32_t route) {
    if constexpr (Handlers::kDefers)
      handlers_.accept(transport_.number(m), route);
  }

  std::uint32_t known_id_ = 0, known_end_ = 0, known_route_ = 0; ///< the function served last; end 0: none
};

} // namespace cudaq::realtime::detail
