// SPDX-License-Identifier: Apache-2.0
// Completes one request, up to its publication: by one lane, or by the whole group.
#pragma once

#include "cudaq/realtime/detail/loop/loop_workspace.h"

#include <utility>

namespace cudaq::realtime::detail {

template <class Group, class Transport, class Handlers, class Helpers>
class request_server {
  using counters = loop_counters<Group>;

public:
  using message = typename Transport::message;

  CUDAQ_REALTIME_HOST_DEVICE request_server(const dispatch_params &params, loop_workspace &workspace,
                                            const Transport &transport, const Handlers &handlers, Helpers &helpers)
      : p_(params), workspace_(workspace), handlers_(handlers), helpers_(helpers), in_(workspace.in),
        out_(workspace.out), staged_out_(transport.slot_size() <= workspace.staging_bytes) {
    const std::uint32_t whole = transport.slot_size() & ~15u, brief = whole < kLookBytes ? whole : kLookBytes;
    brief_end_ = transport.aligned16() && brief >= 2 * sizeof(word16) ? brief - CUDAQ_RPC_HEADER_SIZE + 1 : 0;
  }

  /// The outcome of one request.
  struct served_request {
    verdict what = verdict::serve;
    bool left = false;  ///< not served: only part of the frame is in the workspace; the group has to serve it
    bool later = false; ///< accepted; a graph answers it later
    std::int32_t status = 0;
    std::uint32_t long_bytes = 0;                     ///< not 0: the answer frame is at `out`; the group has to copy it
    std::uint32_t route = function_index_view::kNone; ///< of its handler, if it is to be served
    CUDAQ_REALTIME_HOST_DEVICE bool answered() const { return what == verdict::serve || what == verdict::answer; }
    /// The request's handler is to be called with the bytes in the workspace.
    CUDAQ_REALTIME_HOST_DEVICE bool calls() const { return what == verdict::serve && !left && !later; }
  };

  /// Staging of the workspace, for the request and for the answer.
  CUDAQ_REALTIME_HOST_DEVICE std::uint8_t *in() const { return in_; }
  CUDAQ_REALTIME_HOST_DEVICE std::uint8_t *out() const { return out_; }
  /// Answers are staged in the workspace, not in the slot.
  CUDAQ_REALTIME_HOST_DEVICE bool stages_answers() const { return staged_out_; }

  /// What answer_cached did. not_cached: nothing, the request has to be judged. Any other value: the length of the
  /// answer frame at out_, which the group has to copy and publish.
  enum class cached_result : std::uint32_t { done = 0, not_cached = ~0u };

  /// Lane 0 answers the message at the cursor, publication included, if it matches_cached: the short form of examine,
  /// call and answer. `fetched` bytes of it are at in_.
  CUDAQ_REALTIME_HOST_DEVICE cached_result answer_cached(Transport &transport, counters &counts, const message &m,
                                                         const request &r, bool expected, std::uint32_t fetched) {
    if (unlikely(!matches_cached(r, expected, cached_end_)))
      return cached_result::not_cached;
    if (defers(known_route_)) {
      accept(transport, m, known_route_);
      counts.count_accepted(true);
      return cached_result::done;
    }
    if (unlikely(CUDAQ_RPC_HEADER_SIZE + r.arg_len > fetched))
      return cached_result::not_cached;
    if (Handlers::kDefers) // only here: nothing is posted before a launch
      counts.post_busy(transport.number(m));
    // The length is stored before the result, where the frame's header goes later: one load reads the length and the
    // first bytes of the result.
    auto *const length = reinterpret_cast<std::uint32_t *>(out_ + sizeof(word16));
    *length = 0;
    std::int32_t status = handlers_.call(known_callee_, in_ + CUDAQ_RPC_HEADER_SIZE, out_ + CUDAQ_RPC_HEADER_SIZE,
                                         r.arg_len, transport.max_payload(), length);
    status = returned(status);
    word16 got;
    std::memcpy(&got, __builtin_assume_aligned(length, 16), sizeof(got));
    std::uint32_t result_len = got.part[0], long_bytes = 0;
    std::uint64_t begin;
    std::memcpy(&begin, got.part + 2, 8);
    if (likely(result_len < brief_end_)) {
      write_brief(transport.front(m).response, r, status, result_len, begin, out_ + CUDAQ_RPC_HEADER_SIZE);
      transport.send_front(m);
    } else {
      status = allowed_status(transport.max_payload(), known_route_, status, result_len);
      write_response(out_, r, status, result_len);
      long_bytes = CUDAQ_RPC_HEADER_SIZE + result_len;
    }
    counts.count(verdict::serve, true, status);
    return cached_result{long_bytes};
  }

  // One lane completes a request by three steps, up to its publication. The lanes that judge and answer may be others
  // than the one that calls.

  /// Judges the request `r`, of which `fetched` bytes are at `bytes`.
  CUDAQ_REALTIME_HOST_DEVICE served_request examine(const Transport &transport, const request &r, bool expected,
                                                    const std::uint8_t *bytes, std::uint32_t fetched) {
    const judgement j = judge(r, expected, bytes + CUDAQ_RPC_HEADER_SIZE, transport.max_payload());
    served_request o{j.what, false, false, j.status, 0, j.route};
    if (j.what == verdict::serve) {
      o.later = defers(j.route);
      o.left = !o.later && CUDAQ_RPC_HEADER_SIZE + r.arg_len > fetched;
    }
    return o;
  }
  /// Calls the handler of `route` for the request at `bytes`; the result goes to `out` + CUDAQ_RPC_HEADER_SIZE, its
  /// length to `length`, which must be 0. Returns the status.
  CUDAQ_REALTIME_HOST_DEVICE std::int32_t call(const Transport &transport, std::uint32_t route, std::uint32_t arg_len,
                                               const std::uint8_t *bytes, std::uint8_t *out, std::uint32_t &length) {
    const auto callee = route == known_route_ ? known_callee_ : handlers_.callee(route);
    return returned(handlers_.call(callee, bytes + CUDAQ_RPC_HEADER_SIZE, out + CUDAQ_RPC_HEADER_SIZE, arg_len,
                                   transport.max_payload(), &length));
  }
  /// Hands the request over to a graph, which answers it later.
  CUDAQ_REALTIME_HOST_DEVICE void accept([[maybe_unused]] const Transport &transport, [[maybe_unused]] const message &m,
                                         [[maybe_unused]] std::uint32_t route) {
    if constexpr (Handlers::kDefers)
      handlers_.accept(transport.number(m), route);
  }
  /// Writes the answer, if there is one, to the slot, or to `out`, which may be the slot. A result is at `out` already.
  CUDAQ_REALTIME_HOST_DEVICE void answer(const Transport &transport, const message &m, const request &r,
                                         served_request &o, std::uint32_t result_len, std::uint8_t *out) const {
    if (o.left || o.later || !o.answered())
      return;
    if (o.what == verdict::serve)
      o.status = allowed_status(transport.max_payload(), o.route, o.status, result_len);
    std::uint8_t *const to = transport.response(m);
    const std::uint32_t whole = CUDAQ_RPC_HEADER_SIZE + result_len;
    if (out != to && result_len < brief_end_) {
      std::uint64_t begin;
      std::memcpy(&begin, __builtin_assume_aligned(out + CUDAQ_RPC_HEADER_SIZE, 8), 8);
      write_brief(to, r, o.status, result_len, begin, out + CUDAQ_RPC_HEADER_SIZE);
      return;
    }
    write_response(out, r, o.status, result_len);
    if (out == to)
      return;
    if (whole <= kLookBytes)
      copy_bytes(to, out, whole, false, 0, 1);
    else
      o.long_bytes = whole;
  }

  /// The whole group completes one request, up to its publication. The caller counts it.
  CUDAQ_REALTIME_HOST_DEVICE served_request serve_together(const Transport &transport, counters &counts,
                                                           const message &m, bool expected, std::uint8_t *bytes,
                                                           std::uint32_t fetched) {
    const request r = copied_header<request>(bytes);
    const judgement j = judge(r, expected, bytes + CUDAQ_RPC_HEADER_SIZE, transport.max_payload());
    Group::sync(); // all lanes have the header: in_ may be written
    served_request o{j.what, false, false, j.status, 0, j.route};
    if (!o.answered())
      return o;
    if (j.what == verdict::serve && defers(j.route)) {
      if (Group::lane() == 0)
        accept(transport, m, j.route);
      o.later = true;
      return o;
    }
    std::uint8_t *const out = staged_out_ ? helpers_.out(out_) : transport.response(m);
    std::uint32_t result_len = 0;
    if (j.what == verdict::serve) {
      const std::uint32_t needed = CUDAQ_RPC_HEADER_SIZE + r.arg_len;
      const std::uint8_t *in = bytes;
      if (needed > fetched) { // the copy is in whole words; the stride of a slot is a multiple of them
        in = needed <= workspace_.staging_bytes ? in_ : transport.request(m);
        if (in == in_) {
          helpers_.fetch(in_, transport.request(m), transport.aligned16() ? round16(needed) : (needed + 7) & ~7u,
                         transport.aligned16());
          Group::sync();
          if (Group::lane() == 0) // the header that was judged: the slot's may be another one by now
            write_header(in_, r);
        }
        Group::sync();
      }
      if (Group::lane() == 0)
        counts.post_busy(transport.number(m));
      o.status = helpers_.call(
          handlers_, {j.route, r.arg_len, transport.max_payload(), in, out, needed <= workspace_.staging_bytes},
          result_len);
      o.status = allowed_status(transport.max_payload(), j.route, returned(o.status), result_len);
    }
    if (Group::lane() == 0)
      write_response(out, r, o.status, result_len);
    Group::sync();
    if (staged_out_)
      helpers_.copy(transport.response(m), out, CUDAQ_RPC_HEADER_SIZE + result_len, transport.aligned16());
    Group::sync();
    return o;
  }

private:
  /// True if the request is valid and for the same function as the last one. Most requests are.
  CUDAQ_REALTIME_HOST_DEVICE bool matches_cached(const request &r, bool expected, std::uint32_t end) const {
    return r.function_id == known_id_ && r.arg_len < end && r.magic == CUDAQ_RPC_MAGIC_REQUEST && expected;
  }
  CUDAQ_REALTIME_HOST_DEVICE judgement judge(const request &r, bool expected, const std::uint8_t *payload,
                                             std::uint32_t max_payload) {
    if (likely(matches_cached(r, expected, known_end_)))
      return {verdict::serve, CUDAQ_RPC_OK, known_route_};
    const judgement j = handlers_.judge(r, expected, max_payload, payload, p_.rules);
    if (j.what == verdict::serve && !p_.rules.check_schema && !by_key(j.route)) {
      known_id_ = r.function_id;
      known_route_ = j.route;
      known_callee_ = handlers_.callee(j.route);
      known_end_ = max_payload + 1;
      cached_end_ = staged_out_ ? known_end_ : 0;
    }
    return j;
  }

  /// Writes a frame with a result shorter than brief_end_, in whole 16-byte words. The result is at `result`; `begin`
  /// holds its first 8 bytes.
  CUDAQ_REALTIME_HOST_DEVICE static void write_brief(std::uint8_t *to, const request &r, std::int32_t status,
                                                     std::uint32_t result_len, std::uint64_t begin,
                                                     const std::uint8_t *result) {
    word16 word{{CUDAQ_RPC_MAGIC_RESPONSE, static_cast<std::uint32_t>(status), result_len, r.request_id}};
    store_word16(to, word);
    std::memcpy(&word, &r.ptp_timestamp, 8);
    std::memcpy(word.part + 2, &begin, 8);
    store_word16(to + sizeof(word16), word);
    for (std::uint32_t at = 8; at < result_len; at += sizeof(word16))
      store_word16(to + CUDAQ_RPC_HEADER_SIZE + at, *reinterpret_cast<const word16 *>(result + at));
  }

  /// Replaces an answer that the ring or the schema does not allow by a protocol error. Returns the status.
  CUDAQ_REALTIME_HOST_DEVICE std::int32_t allowed_status(std::uint32_t max_payload, std::uint32_t route,
                                                         std::int32_t status, std::uint32_t &result_len) const {
    if (result_len > max_payload)
      status = CUDAQ_RPC_ERR_RESULT_TOO_LARGE;
    else if (p_.rules.check_schema && status == CUDAQ_RPC_OK && handlers_.contradicts(route, result_len))
      status = CUDAQ_RPC_ERR_SCHEMA_MISMATCH;
    else
      return status;
    result_len = 0;
    return status;
  }

  CUDAQ_REALTIME_HOST_DEVICE bool defers([[maybe_unused]] std::uint32_t route) const {
    if constexpr (Handlers::kDefers)
      return handlers_.defers(route);
    else
      return false;
  }
  /// True if other requests of the function may have another route.
  CUDAQ_REALTIME_HOST_DEVICE bool by_key([[maybe_unused]] std::uint32_t route) const {
    if constexpr (Handlers::kDefers)
      return handlers_.by_key(route);
    else
      return false;
  }
  /// The response's status for that which a handler has returned.
  CUDAQ_REALTIME_HOST_DEVICE std::int32_t returned(std::int32_t status) const {
    if constexpr (Handlers::kDefers)
      return handlers_.returned(status, Group::lane() == 0);
    else
      return status;
  }

  using callee_type = decltype(std::declval<const Handlers &>().callee(0));

  const dispatch_params &p_;
  loop_workspace &workspace_;
  const Handlers &handlers_;
  Helpers &helpers_;
  std::uint8_t *const in_, *const out_;
  const bool staged_out_;
  std::uint32_t brief_end_; ///< shorter results go with the header, in whole words inside the slot
  // The function served last. known_end_: its valid requests have a smaller arg_len; 0: no such function yet.
  // cached_end_: the same for requests that answer_cached serves.
  std::uint32_t known_id_ = 0, known_end_ = 0, cached_end_ = 0, known_route_ = function_index_view::kNone;
  callee_type known_callee_ = {};
};

} // namespace cudaq::realtime::detail
