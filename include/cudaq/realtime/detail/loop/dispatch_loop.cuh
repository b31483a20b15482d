// SPDX-License-Identifier: Apache-2.0
// The dispatch loop: a group finds requests, judges them, has their handlers run and publishes the answers. Regular,
// cooperative and unified kernels are this loop with other parameters; a CPU thread can run it too.
//
// What costs time on a device is a read over the bus, about 1.2 us each if one waits for the other. A request that
// finds the loop idle costs two: its flag, then header and payload together, 16 bytes per lane and all in flight at
// once. Under load one look reads the flags of 32 slots, lane k that of slot k behind the cursor; the ready ones are
// fetched together, judged side by side, and their answers are published side by side, so that a full ring costs four
// waits per 32 requests. Nothing else is read over the bus: shutdown word, function index and handlers are in device or
// shared memory, counters and answers are posted writes.
//
//   Transport   ring_transport.h, shared_ring_transport.h: where requests come from
//   Handlers    handler_sets.h: which handlers there are
//   Helpers     helper_threads.cuh: further threads that help to copy, or that run every handler (cooperative)
#pragma once

#include "cudaq/realtime/detail/loop/fetch.h"
#include "cudaq/realtime/detail/loop/loop_control.h"

namespace cudaq::realtime::detail {

template <class Group, class Transport, class Handlers, class Helpers, bool kAny>
class dispatch_loop : loop_control<Group, Transport, Handlers, Helpers, kAny> {
  using base = loop_control<Group, Transport, Handlers, Helpers, kAny>;
  using base::answer_plain;
  using base::collect_completed;
  using base::count;
  using base::counters_;
  using base::ends;
  using base::first_look_;
  using base::flush_counts;
  using base::handlers_;
  using base::helpers_;
  using base::in_;
  using base::out_;
  using base::overdue;
  using base::poll_control;
  using base::poll_deferred;
  using base::polls_;
  using base::serve_alone;
  using base::serve_together;
  using base::staged_out_;
  using base::stop_requested;
  using base::stopped_;
  using base::take_over;
  using base::takes;
  using base::transport_;
  using base::workspace_;
  using typename base::message;
  using typename base::served_request;

public:
  CUDAQ_REALTIME_HOST_DEVICE dispatch_loop(const dispatch_params &params, std::uint32_t number,
                                           loop_workspace &workspace, const Transport &transport,
                                           const Handlers &handlers, Helpers &helpers)
      : base(params, number, workspace, transport, handlers, helpers) {
    front_.expect(kLookBytes - CUDAQ_RPC_HEADER_SIZE, transport, workspace.staging_bytes);
  }

  /// Serves until a shutdown word is set. `groups`: how many run beside each other (ANY ordering).
  CUDAQ_REALTIME_HOST_DEVICE void run(std::uint32_t groups) {
    if constexpr (Handlers::kDefers)
      take_over();
    poll_control();
    for (std::uint32_t empty = 0; !ends();) { // looks since the last request
      ++polls_;
      if constexpr (Handlers::kDefers)
        poll_deferred();
      empty = !takes() || (kAny ? round(groups) : turn()) != 0 ? 0 : empty + kIdlePolls;
      if (!kAny && empty != 0 && empty % Transport::kSeekPolls == 0 && transport_.seek())
        counters_.count_jump();
      if ((Handlers::kDefers || !stopped_) && empty % kClockPolls == 0 &&
          overdue(empty != 0 ? kIdleCycles : kBusyCycles))
        poll_control();
    }
    flush_counts();
    counters_.post(kAny ? first_look_ : transport_.cursor(), polls_);
    if constexpr (Handlers::kDefers)
      if (Group::lane() == 0)
        handlers_.note_execution(transport_.cursor(), polls_, stopped_);
  }

  /// FIFO: looks at the messages behind the cursor; those that are there are seen through in order. As long as they
  /// come one by one, or not at all for kIdlePolls looks, the next look follows at once. Returns how many.
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t turn() {
    for (std::uint32_t served = 0, empty = 0;; ++polls_) {
      Group::sync(); // the last stores come before this look
      message mine;
      const std::uint32_t there = Group::ballot(Group::lane() < look_ && transport_.poll(Group::lane(), mine));
      const bool single = (there & 3u) == 1;
      if (likely(single && serve_front(mine))) {
        ++served;
        empty = 0;
        if (Handlers::kDefers)
          return served;
      } else if ((there & 1u) != 0 && !stopped_) {
        return served + serve_batch(single, there, mine);
      } else {
        flush_counts();
        look_ = few_at(transport_.cursor());
        if (stopped_ || ++empty == kIdlePolls)
          return served;
      }
    }
  }

  /// ANY: one look at every slot that falls to this group. Returns how many requests it served.
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t round(std::uint32_t groups) {
    std::uint32_t served = 0;
    for (std::uint64_t first = first_look_; first < transport_.num_slots() && !stop_requested();
         first += std::uint64_t{groups} * Group::kWidth) {
      Group::sync(); // the last look's stores come before this one
      transport_.look_at(static_cast<std::uint32_t>(first));
      message mine;
      const std::uint32_t there =
          Group::ballot(Group::lane() < transport_.window() && transport_.poll(Group::lane(), mine));
      if (there == 0)
        continue;
      served += count_bits(there);
      serve_side_by_side(there, mine, fetch_several<Group>(workspace_, transport_, there, mine));
    }
    return served;
  }

private:
  /// Looks that find nothing before the loop does anything else. A look is answered late by what is done between two.
  static constexpr std::uint32_t kIdlePolls = kAny || Handlers::kDefers             ? 1
                                              : Transport::kSeekPolls < kClockPolls ? Transport::kSeekPolls
                                                                                    : kClockPolls;

  // --- fetching ---

  /// How many messages to look at from `cursor` on, if not all of a window: the flags of a memory sector come at the
  /// price of one.
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t few_at(std::uint32_t cursor) const {
    const std::uint32_t few = kSectorFlags - cursor % kSectorFlags;
    return few < transport_.window() ? few : transport_.window();
  }

  /// Where the fetched part of message k stands.
  CUDAQ_REALTIME_HOST_DEVICE std::uint8_t *fetched_frame(std::uint32_t k) const {
    return workspace_.requests + k * kLookPitch;
  }

  /// FIFO: the first messages of the last look, or one that serve_front has left at in_. Returns how many were served.
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t serve_batch(bool single, std::uint32_t there, const message &mine) {
    const std::uint32_t ready = single ? 1 : there == ~0u ? 32 : lowest_bit(~there);
    std::uint32_t fetched = left_bytes_;
    if (!single) {
      flush_counts();
      fetched = fetch_several<Group>(workspace_, transport_, low_bits(ready), mine);
      if constexpr (Handlers::kDefers)
        collect_completed(!handlers_.backlog()); // what others wait for is not these requests' turn
    }
    const std::uint32_t served = serve_in_order(ready, mine, fetched, single ? in_ : workspace_.requests);
    transport_.advance(served);
    look_ = single ? few_at(transport_.cursor()) : transport_.window(); // who is ahead of us has more
    return served;
  }

  /// FIFO, one request. What takes time is done while it is on its way. False: told to stop, and it stays in its slot;
  /// or left_bytes_ of it stand at in_.
  CUDAQ_REALTIME_HOST_DEVICE bool serve_front(const message &mine) {
    bool expected = true, late = false;
    Group::sync(); // nobody reads the last request any more
    const request r = front_.fetch(in_, transport_.front(mine).request, transport_.wide(), helpers_, [&] {
      look_ = few_at(transport_.precompute_next());
      expected = transport_.expected(mine);
      if (!Handlers::kDefers && Group::lane() == 0)
        counters_.post_busy(transport_.number(mine));
      flush_counts();
      late = overdue(kBusyCycles);
      if constexpr (Handlers::kDefers)
        collect_completed(!handlers_.backlog());
    });
    if (unlikely(late)) { // in front of the handler, which may take long
      poll_control();
      if (stopped_)
        return false;
      if (!Handlers::kDefers && Group::lane() == 0)
        counters_.post_busy(transport_.number(mine)); // again: poll_control has reported that nothing is in work
    }
    if constexpr (Helpers::kAllThreadsCall) {
      const std::uint32_t fetched = front_.bytes();
      helpers_.spread(fetched);
      if (const std::uint32_t arg_len = Group::from(r.arg_len, 0); unlikely(!front_.expects(arg_len)))
        front_.expect(arg_len, transport_, workspace_.staging_bytes);
      expected = Group::from(expected, 0);
      const served_request o = serve_together(transport_.at(0), expected, in_, fetched);
      helpers_.finish_spread(); // of what was not served
      publish_front(o.answered(), mine);
      count(o, expected);
    } else {
      std::uint32_t rest = base::kNotPlain;
      if (Group::lane() == 0)
        rest = answer_plain(mine, r, expected, front_.bytes());
      if (unlikely(Group::ballot(Group::lane() == 0 && (rest != 0 || !front_.expects(r.arg_len))) != 0)) {
        rest = Group::from(rest, 0);
        left_bytes_ = front_.bytes();
        front_.expect(Group::from(r.arg_len, 0), transport_, workspace_.staging_bytes);
        if (rest == base::kNotPlain)
          return false;
        if (rest != 0) {
          Group::sync();
          helpers_.copy(transport_.front(mine).response, out_, rest, transport_.wide());
          publish_front(true, mine);
        }
      }
    }
    transport_.advance_one();
    return true;
  }

  /// FIFO: the first lane runs the handlers in order; the group helps with long frames, or takes over where every
  /// thread calls. Answers are published in batches, so that none waits long. Returns how many: all, unless the loop is
  /// to stop.
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t serve_in_order(std::uint32_t ready, const message &mine,
                                                          std::uint32_t fetched, std::uint8_t *bytes) {
    const std::uint32_t expected = Group::ballot(transport_.expected(mine));
    const bool by_one = !Helpers::kAllThreadsCall && staged_out_;
    for (std::uint32_t k = 0, batch_start = 0; k < ready; batch_start = k) {
      const long long begun = Group::common_cycles();
      progress now{k, 0, 0, 0, 0};
      do {
        const std::uint32_t first = now.done;
        if (by_one)
          now = serve_some(now, ready, expected, bytes, fetched, begun);
        if (now.done == first) { // this one takes the group
          const bool as_expected = expected >> first & 1u;
          const served_request o =
              serve_together(transport_.at(first), as_expected, bytes + first * kLookPitch, fetched);
          count(o, as_expected);
          now.answered |= std::uint32_t{o.answered()} << first;
          now.later |= std::uint32_t{o.later} << first;
          ++now.done;
        }
      } while (now.done < ready && Group::common_cycles() - begun < kBatchCycles);
      k = now.done;
      publish(low_bits(k) & ~low_bits(batch_start) & ~now.later, now.answered, mine);
      counters_.count_served(now.plain);
      if (k < ready && stop_requested())
        return k;
    }
    return ready;
  }

  /// How far a batch is.
  struct progress {
    std::uint32_t done;     ///< first message that is not served
    std::uint32_t answered; ///< bit k: message k has an answer
    std::uint32_t later;    ///< bit k: somebody else will answer it
    std::uint32_t long_bytes;
    std::uint32_t plain; ///< served with status 0, not counted yet
  };

  /// The first lane serves messages as far as it gets.
  CUDAQ_REALTIME_HOST_DEVICE progress serve_some(progress now, std::uint32_t ready, std::uint32_t expected,
                                                 const std::uint8_t *bytes, std::uint32_t fetched, long long begun) {
    now.long_bytes = 0;
    if (Group::lane() == 0) {
      for (bool more = true; more;
           more = now.done < ready && now.long_bytes == 0 && Group::cycles() - begun < kBatchCycles) {
        const message m = transport_.at(now.done);
        const bool as_expected = expected >> now.done & 1u;
        if (!Handlers::kDefers)
          counters_.post_busy(transport_.number(m));
        const std::uint8_t *const frame = bytes + now.done * kLookPitch;
        const served_request o = serve_alone(m, read_header<request>(frame), as_expected, frame, fetched, out_);
        if (unlikely(o.left))
          break;
        now.answered |= std::uint32_t{o.answered()} << now.done;
        now.later |= std::uint32_t{o.later} << now.done;
        if (o.later)
          counters_.count_accepted(as_expected);
        else if (unlikely(o.what != verdict::serve || o.status != 0 || !as_expected))
          counters_.count(o.what, as_expected, o.status);
        else
          ++now.plain;
        now.long_bytes = o.long_bytes;
        ++now.done;
      }
    }
    now = Group::from(now, 0);
    if (unlikely(now.long_bytes != 0)) {
      Group::sync();
      helpers_.copy(transport_.response(transport_.at(now.done - 1)), out_, now.long_bytes, transport_.wide());
      Group::sync();
    }
    return now;
  }

  CUDAQ_REALTIME_HOST_DEVICE void publish_front(bool answered, const message &mine) {
    Group::sync(); // the lanes' writes come before the release
    if (Group::lane() == 0)
      answered ? transport_.send_front(mine) : transport_.discard(mine);
  }
  /// Lane k publishes message k of `mask`, all at once; those that have no answer are given back.
  CUDAQ_REALTIME_HOST_DEVICE void publish(std::uint32_t mask, std::uint32_t answered, const message &mine) {
    Group::sync(); // the lanes' writes come before each lane's release
    if ((mask & answered) >> Group::lane() & 1u)
      transport_.send(mine);
    else if (mask >> Group::lane() & 1u)
      transport_.discard(mine);
  }

  // --- ANY ordering ---

  /// Each lane serves its message, all at once; what is too long for that, one after another by the group.
  CUDAQ_REALTIME_HOST_DEVICE void serve_side_by_side(std::uint32_t mask, const message &mine, std::uint32_t fetched) {
    const std::uint32_t lane = Group::lane();
    const bool taken = mask >> lane & 1u;
    const bool expected = taken && transport_.expected(mine);
    std::uint8_t *const out =
        workspace_.out_pitch != 0 ? workspace_.out + lane * workspace_.out_pitch : transport_.response(mine);
    if (lane == lowest_bit(mask))
      counters_.post_busy(transport_.number(mine));
    served_request o;
    if (taken)
      o = serve_alone(mine, read_header<request>(fetched_frame(lane)), expected, fetched_frame(lane), fetched, out);
    const std::uint32_t left = Group::ballot(taken && o.left), done = mask & ~left;
    const std::uint32_t plain =
        Group::ballot(taken && !o.left && o.what == verdict::serve && o.status == 0 && expected);
    counters_.count_served(count_bits(plain));
    for (std::uint32_t odd = done & ~plain; odd != 0; odd &= odd - 1) {
      const served_request its = Group::from(o, lowest_bit(odd));
      counters_.count(its.what, Group::from(expected, lowest_bit(odd)), its.status);
    }
    for (std::uint32_t tall = Group::ballot(taken && o.long_bytes != 0); tall != 0; tall &= tall - 1) {
      const std::uint32_t k = lowest_bit(tall);
      Group::sync();
      helpers_.copy(transport_.response(Group::from(mine, k)), workspace_.out + k * workspace_.out_pitch,
                    Group::from(o.long_bytes, k), transport_.wide());
    }
    publish(done, Group::ballot(taken && o.answered()), mine);
    for (std::uint32_t rest = left; rest != 0 && !stop_requested(); rest &= rest - 1) {
      const std::uint32_t k = lowest_bit(rest);
      const bool as_expected = Group::from(expected, k);
      const served_request its = serve_together(Group::from(mine, k), as_expected, fetched_frame(k), fetched);
      count(its, as_expected);
      publish(1u << k, std::uint32_t{its.answered()} << k, mine);
    }
  }

  std::uint32_t look_ = 1; ///< messages to look at next
  front_fetcher<Group> front_;
  std::uint32_t left_bytes_ = 0; ///< of a request that serve_front did not serve
};

} // namespace cudaq::realtime::detail
