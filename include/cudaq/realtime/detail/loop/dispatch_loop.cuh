// SPDX-License-Identifier: Apache-2.0
// The dispatch loop: a group finds requests, judges them, has their handlers called and publishes the answers. Regular,
// cooperative and unified kernels are this loop with different parameters. A CPU thread can run it too.
//
//   Transport   ring_transport.h, posted_ring_transport.h, shared_ring_transport.h, hook_transport.h: where requests
//               come from
//   Handlers    handler_sets.h: which handlers there are
//   Helpers     helper_threads.cuh: further threads that help to copy, or that all run every handler (cooperative)
//
// Life of one request, regular kernel, FIFO. The ring has 64 slots of 64 bytes, rx_data at 0x7f2000000000, tx_data at
// 0x7f2000001000. The cursor is at slot 5. The producer has written request 42 into that slot, for function "decode",
// with 8 bytes of payload. The last request was of the same form.
//
//   7f2000000140  43555152 b345874f 00000008 0000002a   magic, function id, arg_len, request id
//   7f2000000150  00000000 00000000 00000081 00000000   timestamp, payload
//
//   step        function            what happens
//   poll        turn, poll          lanes 0..2 read rx_flags[5..7], the rest of a memory sector: 7f2000000140, 0, 0
//   fetch       serve_front, fetch  lanes 0 and 1 copy 16 bytes each to in_. All lanes also load bytes 16..31, so that
//                                   lane 0 has the whole header. During the read: the addresses of slot 6; is the flag
//                                   the slot's own address; report.busy = 5 + 1, if it is not that already; clock. If
//                                   the last poll_control is kBusyCycles ago, it runs now: the handler may take long
//   judge       answer_cached       matches_cached: valid magic, expected flag, known function id: no search
//   call        answer_cached       lane 0 calls the handler: it reads in_ + 24 and writes one byte, 01, to out_ + 24
//   answer      write_brief         lane 0 stores two 16-byte words to 7f2000001140:
//                                     43555153 00000000 00000001 0000002a  magic, status, result_len, request id
//                                     00000000 00000000 xxxxxx01 xxxxxxxx  timestamp, result (x: not defined)
//   publish tx  publish_tx          tx_flags[5] = 7f2000001140, release: the consumer may read the answer
//   clear rx    release_rx          rx_flags[5] = 0, release: the producer may fill the slot when tx is 0 again
//   count       count               the report's counts of requests and answers, which the host reads
//   advance     advance_one         the cursor is 6; the next look reads rx_flags[6..7]
//   name next   name_next           report.busy = 6 + 1: the next request is probably there
//
// Several ready, FIFO, for example slots 5, 6, 7: serve_batch fetches the first 64 bytes of each at the same time.
// Lanes 0..2 judge one request each, lane 0 calls the handlers one by one in slot order, lanes 0..2 write one answer
// each. Then they publish one slot each, the cursor moves by 3, and the next look reads 32 flags. A batch that takes
// long is published in parts (part_ends). The room of a staged answer is a slot, however large; but it begins at most
// 528 bytes after that of the one before: handlers run in order, so only an answer that is longer must be sent before
// the next handler may run. ANY: round looks at slots 32 w .. 32 w + 31 for group w, then at 32 (w + groups) and so on.
// Lane k serves and publishes the k-th slot of a look, all lanes at the same time. There is no cursor and no order.
//
// Stop: poll_control reads the library's shutdown word and, more rarely, the caller's. Requests whose handler has not
// been called stay in their slots: rx set, no answer. The next start serves them; on a shared ring another member may.
// With graphs the loop goes on until all accepted requests are answered.
//
// Reads over the bus that wait for each other take about 1.2 us each. A single request needs two: flag and frame. 32
// ready requests also need two: one look and one fetch, each with all its loads in flight. Only frames longer than the
// fetch need more. Nothing else is read over the bus, except the caller's shutdown flag now and then: shutdown word,
// function index and handlers are in device or shared memory; counters and answers are posted writes.
#pragma once

#include "cudaq/realtime/detail/loop/fetch.h"
#include "cudaq/realtime/detail/loop/loop_control.h"
#include "cudaq/realtime/detail/loop/request_server.h"

namespace cudaq::realtime::detail {

template <class Group, class Transport, class Handlers, class Helpers, bool kAny>
class dispatch_loop {
  using server = request_server<Group, Transport, Handlers, Helpers>;
  using message = typename server::message;
  using served_request = typename server::served_request;

public:
  CUDAQ_REALTIME_HOST_DEVICE dispatch_loop(const dispatch_params &params, std::uint32_t number,
                                           loop_workspace &workspace, const Transport &transport,
                                           const Handlers &handlers, Helpers &helpers)
      : workspace_(workspace), handlers_(handlers), helpers_(helpers), transport_(transport),
        counters_(counts_of(handlers, workspace), params.reports + number, params.caller_stats, Handlers::kDefers),
        server_(params, workspace, transport, handlers, helpers), control_(params, number, handlers) {
    front_.expect(kLookBytes - CUDAQ_RPC_HEADER_SIZE, transport, workspace.staging_bytes);
  }

  /// Serves until a shutdown word is set. `groups`: number of groups that serve the ring at the same time (ANY).
  CUDAQ_REALTIME_HOST_DEVICE void run(std::uint32_t groups) {
    if (!control_.begin(transport_, counters_))
      return;
    for (std::uint32_t empty = 0; !control_.ends();) { // looks since the last request
      control_.count_poll();
      if constexpr (Handlers::kDefers)
        control_.poll_deferred(transport_, counters_);
      empty = !control_.takes() || serve(groups) != 0 ? 0 : empty + kIdlePolls;
      if (empty != 0)
        transport_.post_owed();
      if (!kAny && empty != 0 && empty % Transport::kSeekPolls == 0 && transport_.seek())
        counters_.count_jump();
      if ((Handlers::kDefers || !control_.stopped()) && empty % kClockPolls == 0 &&
          control_.overdue(empty != 0 ? kIdleCycles : kBusyCycles))
        poll_control();
    }
    transport_.post_owed();
    control_.end(transport_, counters_);
  }

  /// FIFO: looks from the cursor on and serves the messages that are there, in order. After a single message it looks
  /// again immediately. Returns the number of served messages: after a batch, after kIdlePolls empty looks, at a stop,
  /// and with graphs after each message.
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t turn() {
    for (std::uint32_t served = 0, empty = 0;; control_.count_poll()) {
      if constexpr (Transport::kWaits)
        if (control_.stops_before_look(transport_, counters_))
          return served;
      Group::sync(); // the last stores come before this look
      message mine;
      const std::uint32_t there = Group::ballot(Group::lane() < look_ && transport_.poll(Group::lane(), mine));
      const bool single = (there & 3u) == 1;
      if (likely(single && serve_front(mine))) {
        ++served;
        empty = 0;
        if (Handlers::kDefers)
          return served;
      } else if ((there & 1u) != 0 && !control_.stopped()) {
        return served + serve_batch(single, there, mine);
      } else {
        look_ = sector_window(transport_.cursor());
        if (Transport::kWaits)
          control_.stop();
        if (control_.stopped() || ++empty == kIdlePolls)
          return served;
      }
    }
  }

  /// ANY: one look at every slot of this group's share. Returns the number of served requests.
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t round(std::uint32_t groups) {
    std::uint32_t served = 0;
    for (std::uint64_t first = control_.first_look(); first < transport_.num_slots() && !stop_requested();
         first += std::uint64_t{groups} * Group::kWidth) {
      Group::sync(); // the last look's stores come before this one
      transport_.look_at(static_cast<std::uint32_t>(first));
      message mine;
      const std::uint32_t there =
          Group::ballot(Group::lane() < transport_.window() && transport_.poll(Group::lane(), mine));
      if (there == 0)
        continue;
      served += count_bits(there);
      serve_side_by_side(there, mine, fetch(there, mine));
    }
    return served;
  }

private:
  // --- common to FIFO and ANY ---

  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t serve([[maybe_unused]] std::uint32_t groups) {
    if constexpr (kAny)
      return round(groups);
    else
      return turn();
  }
  /// Empty looks before the loop does anything else: work between two looks delays the answer to a new request.
  static constexpr std::uint32_t kIdlePolls = kAny || Handlers::kDefers             ? 1
                                              : Transport::kSeekPolls < kClockPolls ? Transport::kSeekPolls
                                                                                    : kClockPolls;

  CUDAQ_REALTIME_HOST_DEVICE bool trigger_waits() const {
    if constexpr (Handlers::kDefers)
      return handlers_.trigger_waits();
    else
      return false;
  }
  CUDAQ_REALTIME_HOST_DEVICE void poll_control() {
    named_ = kNoneNamed; // it posts that no handler runs
    control_.poll_control(transport_, counters_);
  }
  CUDAQ_REALTIME_HOST_DEVICE bool stop_requested() {
    named_ = kNoneNamed;
    return control_.stop_requested(transport_, counters_);
  }
  CUDAQ_REALTIME_HOST_DEVICE void count(const served_request &o, bool expected) {
    if (o.later)
      counters_.count_accepted(expected);
    else
      counters_.count(o.what, expected, o.status);
  }

  /// Fetches the first bytes of the messages of `mask`. Returns the number of bytes of each.
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t fetch(std::uint32_t mask, const message &mine) {
    if ((mask >> Group::lane() & 1u) != 0)
      transport_.prepare(mine);
    return fetch_several<Group>(workspace_, transport_, mask, mine);
  }
  /// Lane k publishes message k of `mask`, all lanes at the same time. Slots without an answer are given back.
  CUDAQ_REALTIME_HOST_DEVICE void publish(std::uint32_t mask, std::uint32_t answered, const message &mine) {
    Group::sync(); // the lanes' writes come before each lane's release
    if ((mask & answered) >> Group::lane() & 1u)
      transport_.send(mine);
    else if (mask >> Group::lane() & 1u)
      transport_.discard(mine);
  }

  // The three bodies that serve requests. `fetched`: bytes of the frame that the fetch has copied to the workspace.
  //
  //                   serve_front, answer_cached     serve_in_order, serve_some      serve_side_by_side
  //   ordering        FIFO                           FIFO                            ANY
  //   runs when       one slot is ready              several are, or answer_cached   any slots are ready
  //                                                  has not taken the request
  //   handler run by  lane 0                         lane 0, one by one              lane k, all at the same time
  //   frame longer    left to serve_in_order         serve_together: the group       serve_together, after the lanes
  //   than `fetched`                                 copies it, lane 0 calls         have finished theirs
  //   cooperative     serve_together, all threads    serve_together, all threads     refused at start
  //   answer staged   at out_; the group copies      at out + k * out_pitch, or at   at out + k * out_pitch; if slots
  //                   results from brief_end_ on     out; the group copies frames    exceed 512 bytes, in the slot
  //                                                  above 64 bytes
  //   published by    lane 0, immediately:           lane k, the k-th message of     lane k, when all lanes have
  //                   send_front                     a batch: publish                finished: publish
  //
  // FIFO, slots larger than the staging: serve_in_order, serve_together; the answer is written in the slot itself.

  // --- FIFO: the message at the cursor ---

  /// Number of messages of a small look from `cursor` on: all flags of a memory sector cost as much as one.
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t sector_window(std::uint32_t cursor) const {
    const std::uint32_t in_sector = kSectorFlags - cursor % kSectorFlags;
    return in_sector < transport_.window() ? in_sector : transport_.window();
  }

  /// Fetches and serves one request. Work that takes time is done during the fetch. Returns false if a stop is
  /// requested (the request stays in its slot), or if serve_batch has to serve it: left_bytes_ of it are at in_.
  CUDAQ_REALTIME_HOST_DEVICE bool serve_front(const message &mine) {
    bool expected = true, late = false;
    Group::sync(); // all lanes have read the last request
    const request r = front_.fetch(server_.in(), transport_.front(mine).request, transport_.aligned16(), helpers_, [&] {
      look_ = sector_window(transport_.precompute_next());
      expected = transport_.expected(mine);
      if (!Handlers::kDefers && Group::lane() == 0 && transport_.number(mine) != named_)
        counters_.post_busy(transport_.number(mine));
      late = !Transport::kWaits && control_.overdue(kBusyCycles);
      if constexpr (Handlers::kDefers)
        control_.collect_completed(counters_, !handlers_.backlog());
    });
    if (unlikely(late)) { // before the handler, which may take long
      poll_control();
      if (control_.stopped())
        return false;
      if (!Handlers::kDefers && Group::lane() == 0)
        counters_.post_busy(transport_.number(mine)); // poll_control() reported idle: report the slot again
    }
    if constexpr (Helpers::kAllThreadsCall) {
      const std::uint32_t fetched = front_.bytes();
      helpers_.spread(fetched);
      if (const std::uint32_t arg_len = Group::from(r.arg_len, 0); unlikely(!front_.expects(arg_len)))
        front_.expect(arg_len, transport_, workspace_.staging_bytes);
      expected = Group::from(expected, 0);
      const served_request o =
          server_.serve_together(transport_, counters_, transport_.at(0), expected, server_.in(), fetched);
      helpers_.finish_spread(); // of a request that was not served
      publish_front(o.answered(), mine);
      count(o, expected);
    } else {
      using cached_result = typename server::cached_result;
      cached_result result = cached_result::not_cached;
      if (Group::lane() == 0)
        result = server_.answer_cached(transport_, counters_, mine, r, expected, front_.bytes());
      if (unlikely(Group::ballot(Group::lane() == 0 && (result != cached_result::done || !front_.expects(r.arg_len))) !=
                   0)) {
        result = cached_result{Group::from(static_cast<std::uint32_t>(result), 0)};
        left_bytes_ = front_.bytes();
        front_.expect(Group::from(r.arg_len, 0), transport_, workspace_.staging_bytes);
        if (result == cached_result::not_cached)
          return false;
        if (result != cached_result::done) {
          Group::sync();
          helpers_.copy(transport_.front(mine).response, server_.out(), static_cast<std::uint32_t>(result),
                        transport_.aligned16());
          publish_front(true, mine);
        }
      }
    }
    transport_.advance_one();
    name_next();
    return true;
  }
  /// Posts the next slot as busy, after an answer: its request is probably the next. A release at system scope waits
  /// until posts before it have arrived in host memory; these arrive before the next answer is published.
  CUDAQ_REALTIME_HOST_DEVICE void name_next() {
    if constexpr (Transport::kSlotsInOrder && !Handlers::kDefers) {
      named_ = transport_.cursor();
      if (Group::lane() == 0)
        counters_.post_busy(named_);
    }
  }
  CUDAQ_REALTIME_HOST_DEVICE void publish_front(bool answered, const message &mine) {
    Group::sync(); // the lanes' writes come before the release
    if (Group::lane() == 0)
      answered ? transport_.send_front(mine) : transport_.discard(mine);
  }

  // --- FIFO: several messages ---

  /// Serves the first messages of the last look, or the one that serve_front left at in_. Returns the number of them.
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t serve_batch(bool single, std::uint32_t there, const message &mine) {
    const std::uint32_t ready = single ? 1 : there == ~0u ? 32 : lowest_bit(~there);
    std::uint32_t fetched = left_bytes_;
    named_ = kNoneNamed;
    if (!single) {
      fetched = fetch(low_bits(ready), mine);
      if constexpr (Handlers::kDefers)
        control_.collect_completed(counters_, !handlers_.backlog()); // a backlog comes before these requests
    }
    const std::uint32_t served = serve_in_order(ready, mine, fetched, single ? server_.in() : workspace_.requests);
    transport_.advance(served);
    look_ = single ? sector_window(transport_.cursor()) : transport_.window(); // after a batch: more are probably ready
    return served;
  }

  /// Lane 0 runs the handlers in order. The group copies long frames, and takes over where all threads call. Publishes
  /// when a part ends (part_ends) and at the end. Returns the number of served messages: all, unless a stop is
  /// requested or a handler has triggered a graph.
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t serve_in_order(std::uint32_t ready, const message &mine,
                                                          std::uint32_t fetched, std::uint8_t *bytes) {
    const std::uint32_t expected = Group::ballot(transport_.expected(mine));
    const bool by_one = !Helpers::kAllThreadsCall && server_.stages_answers();
    for (std::uint32_t k = 0, batch_start = 0; k < ready; batch_start = k) {
      const long long begun = Group::common_cycles();
      batch_progress now{k};
      bool triggered = false; // a graph is launched before the next request, and after this answer
      do {
        const std::uint32_t first = now.done;
        if (by_one)
          now = serve_some(now, ready, expected, bytes, fetched, batch_start, begun);
        if (now.done == first) { // this message needs the group
          const bool as_expected = expected >> first & 1u;
          const served_request o = server_.serve_together(transport_, counters_, transport_.at(first), as_expected,
                                                          bytes + first * kLookPitch, fetched);
          count(o, as_expected);
          now.answered |= std::uint32_t{o.answered()} << first;
          now.later |= std::uint32_t{o.later} << first;
          ++now.done;
        }
        if constexpr (Handlers::kDefers)
          triggered = Group::ballot(Group::lane() == 0 && trigger_waits()) != 0;
      } while (now.done < ready && !triggered && !part_ends(Group::common_cycles() - begun, now.done - batch_start));
      k = now.done;
      publish(low_bits(k) & ~low_bits(batch_start) & ~now.later, now.answered, mine);
      counters_.count_served(now.plain);
      if (k < ready && (triggered || stop_requested()))
        return k;
    }
    return ready;
  }

  /// Serves messages of the last look from now.done on, as many as there is room for answers: up to one that needs the
  /// group or has a long answer, and until the part ends, which has begun at `begun` with message `part`. Each lane
  /// judges one and writes its answer; lane 0 calls the handlers, one by one.
  CUDAQ_REALTIME_HOST_DEVICE batch_progress serve_some(batch_progress now, std::uint32_t ready, std::uint32_t expected,
                                                       const std::uint8_t *bytes, std::uint32_t fetched,
                                                       std::uint32_t part, long long begun) {
    const std::uint32_t lane = Group::lane(), first = now.done, left = ready - first;
    const std::uint32_t room = Handlers::kDefers || workspace_.out_pitch == 0 ? 1 : Group::kWidth;
    const std::uint32_t judged = left < room ? left : room;
    const std::uint8_t *const frames = bytes + first * kLookPitch;
    const bool as_expected = lane < judged && (expected >> (first + lane) & 1u) != 0;
    message m;
    request r;
    served_request o;
    if (lane < judged) {
      m = transport_.at(first + lane);
      r = copied_header<request>(frames + lane * kLookPitch);
      o = server_.examine(transport_, r, as_expected, frames + lane * kLookPitch, fetched);
      workspace_.routes[lane] = o.route;
      workspace_.result_len[lane] = 0;
    }
    const std::uint32_t needs_group = Group::ballot(o.left), later = Group::ballot(o.later);
    const std::uint32_t calls = Group::ballot(lane < judged && o.calls());
    const std::uint32_t end = needs_group != 0 ? lowest_bit(needs_group) : judged;
    Group::sync(); // lane 0 sees the routes
    std::uint32_t done = 0;
    if (lane == 0 && end != 0) {
      const bool overlap = workspace_.out_pitch < transport_.slot_size();
      do {
        if ((calls >> done & 1u) != 0)
          call_handler(first + done, frames + done * kLookPitch, done);
        else if ((later >> done & 1u) != 0)
          server_.accept(transport_, m, o.route); // with graphs there is room for one
        ++done;
      } while (done != end && !(overlap && is_long(done - 1)) &&
               !part_ends(Group::cycles() - begun, first + done - part));
    }
    done = Group::from(done, 0);
    Group::sync(); // the lanes see their results
    if (lane < done) {
      if (o.calls())
        o.status = workspace_.status[lane];
      server_.answer(transport_, m, r, o, workspace_.result_len[lane], answer_of(lane));
    }
    const std::uint32_t served = low_bits(done);
    copy_long_answers(lane < done ? o.long_bytes : 0, m);
    const std::uint32_t plain = calls & served & Group::ballot(o.status == 0 && as_expected);
    for_each_of(served & ~plain, [&](std::uint32_t k) { count(Group::from(o, k), Group::from(as_expected, k)); });
    now.done += done;
    now.answered |= Group::ballot(lane < done && o.answered()) << first;
    now.later |= (later & served) << first;
    now.plain += count_bits(plain);
    return now;
  }
  /// Calls the handler of message k of the last look, whose frame is at `frame`, for the `lane` that has judged it.
  CUDAQ_REALTIME_HOST_DEVICE void call_handler(std::uint32_t k, const std::uint8_t *frame, std::uint32_t lane) {
    counters_.post_busy(transport_.number(transport_.at(k)));
    workspace_.status[lane] = server_.call(transport_, workspace_.routes[lane], copied_header<request>(frame).arg_len,
                                           frame, answer_of(lane), workspace_.result_len[lane]);
  }
  /// The answer to the message that `lane` has judged reaches into the room of the next one.
  CUDAQ_REALTIME_HOST_DEVICE bool is_long(std::uint32_t lane) const {
    return workspace_.result_len[lane] > workspace_.out_pitch - CUDAQ_RPC_HEADER_SIZE;
  }
  /// Where the answer to the message that `lane` has judged is staged, if it is.
  CUDAQ_REALTIME_HOST_DEVICE std::uint8_t *answer_of(std::uint32_t lane) const {
    return workspace_.out + lane * workspace_.out_pitch;
  }
  /// Calls body(k) for each bit of `mask`, on all lanes.
  template <class Body>
  CUDAQ_REALTIME_HOST_DEVICE static void for_each_of(std::uint32_t mask, Body &&body) {
    for (; mask != 0; mask &= mask - 1)
      body(lowest_bit(mask));
  }
  /// The group copies the answer frames of the lanes whose `bytes` are not 0 to the slots of their messages.
  CUDAQ_REALTIME_HOST_DEVICE void copy_long_answers(std::uint32_t bytes, const message &mine) {
    for_each_of(Group::ballot(bytes != 0), [&](std::uint32_t k) {
      Group::sync();
      helpers_.copy(transport_.response(Group::from(mine, k)), answer_of(k), Group::from(bytes, k),
                    transport_.aligned16());
    });
  }

  // --- ANY ---

  /// Address of the fetched part of message k.
  CUDAQ_REALTIME_HOST_DEVICE std::uint8_t *fetched_frame(std::uint32_t k) const {
    return workspace_.requests + k * kLookPitch;
  }

  /// Each lane serves its message, all lanes at the same time. Then the group serves the messages that are too long for
  /// one lane, one after another.
  CUDAQ_REALTIME_HOST_DEVICE void serve_side_by_side(std::uint32_t mask, const message &mine, std::uint32_t fetched) {
    const std::uint32_t lane = Group::lane();
    const bool taken = mask >> lane & 1u;
    const bool expected = taken && transport_.expected(mine);
    if (lane == lowest_bit(mask))
      counters_.post_busy(transport_.number(mine));
    served_request o;
    if (taken) {
      std::uint8_t *const out = workspace_.out_pitch != 0 ? answer_of(lane) : transport_.response(mine);
      const auto r = copied_header<request>(fetched_frame(lane));
      o = server_.examine(transport_, r, expected, fetched_frame(lane), fetched);
      std::uint32_t &result_len = workspace_.result_len[lane];
      result_len = 0;
      if (o.calls())
        o.status = server_.call(transport_, o.route, r.arg_len, fetched_frame(lane), out, result_len);
      server_.answer(transport_, mine, r, o, result_len, out);
    }
    const std::uint32_t left = Group::ballot(o.left), done = mask & ~left;
    const std::uint32_t plain =
        Group::ballot(taken && !o.left && o.what == verdict::serve && o.status == 0 && expected);
    counters_.count_served(count_bits(plain));
    for_each_of(done & ~plain, [&](std::uint32_t k) { count(Group::from(o, k), Group::from(expected, k)); });
    copy_long_answers(o.long_bytes, mine);
    publish(done, Group::ballot(taken && o.answered()), mine);
    for (std::uint32_t remaining = left; remaining != 0 && !stop_requested(); remaining &= remaining - 1) {
      const std::uint32_t k = lowest_bit(remaining);
      const bool as_expected = Group::from(expected, k);
      const served_request value =
          server_.serve_together(transport_, counters_, Group::from(mine, k), as_expected, fetched_frame(k), fetched);
      count(value, as_expected);
      publish(1u << k, std::uint32_t{value.answered()} << k, mine);
    }
  }

  loop_workspace &workspace_;
  const Handlers &handlers_;
  Helpers &helpers_;
  Transport transport_;
  loop_counters<Group> counters_;
  server server_;
  loop_control<Group, Transport, Handlers, kAny> control_;
  front_fetcher<Group> front_;
  std::uint32_t left_bytes_ = 0; ///< fetched bytes of the request that serve_front left
  std::uint32_t look_ = 1;       ///< number of messages of the next look
  static constexpr std::uint32_t kNoneNamed = ~0u;
  std::uint32_t named_ = kNoneNamed; ///< slot that name_next() has posted last, if nothing else is posted since
};

} // namespace cudaq::realtime::detail
