// SPDX-License-Identifier: Apache-2.0
// One turn of the host: look at one slot, and if a request stands there, complete it. Threads, waiting and counting
// live elsewhere; the loop is this function and a cursor.
//
// The Server does what differs between them. It provides
//   bool     no_job(i)                        no accepted request is still to be answered in the slot; asked before the
//                                             rx flag is read, since whoever answers clears rx first and the job then
//   bool     may_take(i)                      a request is there; it can be taken now
//   void     note_taken(i, r, expected_flag)  a request was taken up; expected_flag: the flag was the slot's address
//   void     note_dropped(verdict)
//   void     note_refused()                   it will be answered without a handler
//   void     note_answered(status)            after publication
//   handler_result  serve(i, r, route)               run the handler, or start it
#pragma once

#include "cudaq/realtime/detail/ring/judge.h"

namespace cudaq::realtime::detail {

/// What became of the slot.
enum class turn_result : std::uint8_t {
  idle,     ///< nothing there; stay
  waiting,  ///< something is there that cannot be taken yet; stay
  answered, ///< a response was published; go on
  dropped,  ///< cleared without a response; go on
  taken,    ///< accepted, the response will be published by somebody else; go on
};

/// What a Server says of a request that it was given.
struct handler_result {
  bool now = true; ///< false: taken, it will be answered later and not by this turn
  std::int32_t status = CUDAQ_RPC_OK;
  std::uint32_t result_len = 0;
};

/// How an answer goes out that is not simply a frame in a slot whose request side is still held.
struct publication {
  /// The IN_FLIGHT marker holds the slot: rx was cleared when the request was accepted or launched.
  bool rx_released = false;
  std::uint32_t cuda_error = 0; ///< not 0: the error sentinel takes the place of the marker, and there is no frame
};

/// Every answer that the host writes goes out here: frames it (or puts the error sentinel in its place), raises the tx
/// flag, frees the request side if it is still held. Status and length of `said` are final: what a handler has said was
/// checked before, once.
CUDAQ_REALTIME_HOST_DEVICE inline void publish_answer(const slot_ring &ring, std::uint32_t i, const request &r,
                                                      const handler_result &said, const publication &how = {}) {
  if (how.cuda_error != 0) {
    ring.publish_error(i, how.cuda_error);
  } else {
    write_response(ring.tx_slot(i), r, said.status, said.result_len);
    ring.publish_tx(i);
  }
  if (!how.rx_released)
    ring.release_rx(i);
}

template <class Server>
CUDAQ_REALTIME_HOST_DEVICE inline turn_result take_turn(const slot_ring &ring, std::uint32_t i,
                                                        const function_index_view &index, const judge_rules &rules,
                                                        Server &server) {
  if (!server.no_job(i))
    return turn_result::waiting;
  const std::uint64_t flag = ring.ready(i);
  if (flag == 0)
    return turn_result::idle;
  if (!server.may_take(i))
    return turn_result::waiting;
  const request r = read_header<request>(ring.rx_slot(i));
  server.note_taken(i, r, ring.is_own_address(i, flag));
  const judgement j = judge_slot(ring, i, flag, r, index, rules);
  handler_result done{true, j.status, 0};
  if (j.what == verdict::serve) {
    done = server.serve(i, r, j.route);
    if (!done.now)
      return turn_result::taken;
  } else if (j.what == verdict::answer) {
    server.note_refused();
  } else {
    server.note_dropped(j.what);
    ring.release_rx(i);
    return turn_result::dropped;
  }
  publish_answer(ring, i, r, done);
  server.note_answered(done.status);
  return turn_result::answered;
}

} // namespace cudaq::realtime::detail
