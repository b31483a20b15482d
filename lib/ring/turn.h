// SPDX-License-Identifier: Apache-2.0
// One turn at one slot of a ring, on the host: take_turn looks at the slot and, if a request is ready, serves it. On a
// ring that is not shared, host_dispatcher::turn calls it slot by slot and moves the cursor. On a shared ring
// ring_router::route_one does steps 1 to 5 instead. Threads and waiting are in lib/base/runner.h, the counters in
// lib/shared_ring/thread_counters.h.
//
// Life of one request
//
// The ring has 64 slots of 64 bytes, rx_data at 0x10000 and tx_data at 0x20000. The producer has written a request to
// slot 5, that is to 0x10000 + 5 * 64 = 0x10140, and has stored this address to the slot's rx flag. The function 0x7A11
// is a HOST_CALL entry of the table: it counts the set bits of its payload. No handler of the dispatcher can defer.
//
//   word of rx_slot(5)     fields
//   0x00007A11'43555152    function_id 0x7A11, magic 0x43555152
//   0x0000002A'00000008    request_id 42, arg_len 8
//   0x00000000'000003E8    ptp_timestamp 1000
//   0x00000000'000000FF    payload
//
//       step                      function                             rx flag  tx flag  result
//    1  slot has no open job      server.no_job(5)                     0x10140  0        true
//    2  flag seen                 ring.ready(5)                        0x10140  0        0x10140
//    3  last answer collected     server.may_take(5)                   0x10140  0        true, because tx is 0
//    4  header read, once         read_header<request>                 0x10140  0        {magic, 0x7A11, 8, 42, 1000}
//    5  header judged             judge_slot                           0x10140  0        {serve, 0, route}
//    6  handler called            server.serve -> handler_table::run   0x10140  0        {true, 0, 4}
//    7  response framed           publish_answer -> write_response     0x10140  0        header in tx_slot(5)
//    8  tx published              ring.publish_tx(5)                   0x10140  0x20140  consumer may read the frame
//    9  rx cleared                ring.release_rx(5)                   0        0x20140  the tx flag holds the slot
//   10  response counted          server.note_answered(0)              0        0x20140  turn_result::answered
//
//   word of tx_slot(5)     fields
//   0x00000000'43555153    status 0, magic 0x43555153
//   0x0000002A'00000004    request_id 42 (echoed), result_len 4
//   0x00000000'000003E8    ptp_timestamp 1000 (echoed)
//   0x........'00000008    result 8, a u32, written by the handler in step 6
//
// Step 9 never comes before step 8: the producer would see both flags 0 and refill the slot. The consumer reads the
// frame and stores 0 to the tx flag. Both flags are then 0, and the slot is free.
//
// Taken (turn_result::taken): take_turn returns after step 6. All these requests have a job record (job_table.h). For
// those that the library answers, job_responder::publish counts the response, does steps 7 to 9, then closes the job.
// So the response is counted before its publication; take_turn counts it after (step 10).
//   pool       host_dispatcher::accept stores tx = IN_FLIGHT, then rx = 0, and queues the job; a pool thread runs the
//              handler and publishes. Without markers rx stays 0x10140 and tx stays 0 until then.
//   tracked    If there are v2 handlers, which may defer, or graph workers, host_dispatcher::run_job runs every handler
//              in step 6 (with a pool: later, on a pool thread). If the handler returns a status, the same thread
//              publishes it immediately. If it returns CUDAQ_HOST_CALL_DEFERRED, the thread that calls
//              cudaq_host_complete_deferred publishes. rx stays 0x10140 until then, unless a pool has cleared it.
//              job_table.h has the case that the completion comes while the handler runs.
//   graph      accept queues the job. graph_path::launch stores tx = IN_FLIGHT, graph_path::launched rx = 0; without
//              markers rx stays set. After the end of the graph (if the caller releases the worker: after that) comes
//              graph_path::graph_ended. If the graph or the caller has set tx, it only counts the response, clears rx
//              (if still set) and closes the job. Otherwise it publishes. But the answer of such a worker is published
//              by the thread that calls cudaq_host_complete_deferred.
//
// Refused, without a call of the handler
//   answered   arg_len 41 is more than the 64 - 24 = 40 bytes of the slot: step 5 returns {answer, -1000}, then
//              server.note_refused and steps 7 to 10 with status -1000 (0xFFFFFC18) and result_len 0.
//   dropped    Wrong magic; by default an unknown function_id (with answer_unknown it is answered NO_SUCH_FUNCTION);
//              with strict_flag_values a flag that is not the slot's address. server.note_dropped, then only step 9. tx
//              stays 0. No response is written.
//
// note_taken counts each flag that is not the slot's address. Without strict_flag_values such a request is served: the
// value of the flag is never dereferenced.
//
// The Server has the parts that differ between dispatchers. It provides
//   bool     no_job(i)                        The slot has no accepted request that is still to be answered. Called
//                                             before the rx flag is read. The thread that answers clears rx first and
//                                             closes the job after that. If the flag were read first, this thread could
//                                             see the old flag, then the closed job, and serve the request twice.
//   bool     may_take(i)                      A request is ready; true if it can be taken now.
//   void     note_taken(i, r, expected_flag)  A request is taken; expected_flag: the flag was the slot's address.
//   void     note_dropped(verdict)
//   void     note_refused()                   The request will be answered without a handler.
//   void     note_answered(status)            Called after publication. Not called for `taken`.
//   handler_result  serve(i, r, route)        Runs the handler, or hands the request over.
#pragma once

#include "cudaq/realtime/detail/ring/judge.h"

namespace cudaq::realtime::detail {

/// The result of a turn.
enum class turn_result : std::uint8_t {
  idle,     ///< no request; the cursor stays
  waiting,  ///< a request or a job that cannot be taken yet; the cursor stays
  answered, ///< the response was published; the cursor moves on
  dropped,  ///< cleared without a response; the cursor moves on
  taken,    ///< accepted; the response is not published by take_turn (see handler_result::now); the cursor moves on
};

/// The result of Server::serve, and the answer to a request.
struct handler_result {
  /// False: take_turn does not answer. serve has published the response itself, or it is published later.
  bool now = true;
  std::int32_t status = CUDAQ_RPC_OK;
  std::uint32_t result_len = 0;
};

/// How an answer is published. The defaults: a response frame, in a slot whose rx flag is still set.
struct publication {
  /// rx was cleared when the request was accepted or launched; the IN_FLIGHT marker holds the slot.
  bool rx_released = false;
  std::uint32_t cuda_error = 0; ///< not 0: the error sentinel replaces the marker, and no frame is written
};

/// Publishes an answer; every answer that the host writes passes here. Writes the response header (or, instead of it,
/// the error sentinel), sets the tx flag, then clears the rx flag if it is still set. Status and length in `response`
/// are final: the answer of a handler is checked once, before this call.
CUDAQ_REALTIME_HOST_DEVICE inline void publish_answer(const slot_ring &ring, std::uint32_t i, const request &r,
                                                      const handler_result &response, const publication &how = {}) {
  if (how.cuda_error != 0) {
    ring.publish_error(i, how.cuda_error);
  } else {
    write_response(ring.tx_slot(i), r, response.status, response.result_len);
    ring.publish_tx(i);
  }
  if (!how.rx_released)
    ring.release_rx(i);
}

/// One turn at slot `i`. Only for the thread that reads the ring.
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
