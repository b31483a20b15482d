// SPDX-License-Identifier: Apache-2.0
// A transport finds requests for a dispatch loop and gives answers back. This one is a ring of slots with flags.
// Another one (for example the queue pair of a NIC) is a type with the same members. All lanes of a group call all
// members together; lane k's argument is message k, counted from the cursor:
//
//   message              what is known of a message, trivially copyable
//   window()             number of messages that one look can find, at most the group's width; lower lanes look
//   poll(k, m)           true, and m is filled in, if message k is there
//   at(k)                message k of the last look, as far as request() and response() need it; any lane
//   request(m)           its frame: readable() bytes may be read, aligned to 16 if aligned16(), else to 8
//   response(m)          where the answer goes: slot_size() bytes
//   send(m)              publishes the answer and gives the request's place back (a NIC: post send, repost receive)
//   discard(m)           gives the place back without an answer
//   advance(n)           moves the cursor: the first n messages are done
//   front(m)             request and response of m, message 0 of the last look; on all lanes
//   prepare(m)           called once for each message that is published by send(m) or discard(m), before its frame is
//                        read: loads what these need. Message 0 of a look may come from precompute_next() instead
//   precompute_next()    called once between a look and advance_one(), while a request is being read: computes the
//                        addresses of the next one. Returns the cursor() after advance_one()
//   send_front(m), advance_one()   the same as send(m) and advance(1), for message 0
//   post_owed()          called after some empty looks, and after the last look: posts what was left to a later request
//   seek()               called after kSeekPolls empty looks: looks elsewhere; true if the cursor moved
//   expected(m)          the message was announced as the protocol requires
//   number(m)            identifies it in diagnostics, less than 2^24
//   kWaits               a look waits for a message; without one, the loop ends (hook_transport.h)
//   kSlotsInOrder        the next message is probably in the slot cursor(), with this number
#pragma once

#include "cudaq/realtime/detail/loop/thread_group.h"
#include "cudaq/realtime/detail/ring/slot_ring.h"

namespace cudaq::realtime::detail {

template <class Group, thread_scope Scope>
class ring_transport {
public:
  static constexpr bool kWaits = false, kSlotsInOrder = true;
  static constexpr std::uint32_t kSeekPolls = 32; ///< empty looks between two calls of seek()
  struct message {
    std::uint32_t slot = 0;
    std::uint64_t flag = 0;
  };
  struct frames {
    const std::uint8_t *request;
    std::uint8_t *response;
  };

  CUDAQ_REALTIME_HOST_DEVICE ring_transport(const slot_ring &r, std::uint32_t first)
      : ring_(r.template with_scope<Scope>()), cursor_(first) {
    aligned16_ = (reinterpret_cast<std::uint64_t>(r.rx_data) | reinterpret_cast<std::uint64_t>(r.tx_data) |
                  r.rx_stride | r.tx_stride) %
                     16 ==
                 0;
    here_ = ring_.slot(cursor_);
  }

  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t window() const {
    const std::uint32_t left = end_ - cursor_;
    const std::uint32_t slots = end_ == 0 ? ring_.num_slots : left;
    return slots < Group::kWidth ? slots : Group::kWidth;
  }
  CUDAQ_REALTIME_HOST_DEVICE bool poll(std::uint32_t k, message &m) const {
    m.slot = slot_at(k);
    m.flag = load_acquire<std::uint64_t, Scope>(here_.rx_flag[static_cast<std::int32_t>(m.slot - cursor_)]);
    return m.flag != 0;
  }
  CUDAQ_REALTIME_HOST_DEVICE message at(std::uint32_t k) const { return {slot_at(k), 0}; }
  CUDAQ_REALTIME_HOST_DEVICE const std::uint8_t *request(const message &m) const { return ring_.rx_slot(m.slot); }
  CUDAQ_REALTIME_HOST_DEVICE std::uint8_t *response(const message &m) const { return ring_.tx_slot(m.slot); }
  CUDAQ_REALTIME_HOST_DEVICE void send(const message &m) const { ring_.publish(m.slot); }
  CUDAQ_REALTIME_HOST_DEVICE void discard(const message &m) const { ring_.release_rx(m.slot); }
  CUDAQ_REALTIME_HOST_DEVICE void advance(std::uint32_t n) { go_to(slot_at(n)); }
  CUDAQ_REALTIME_HOST_DEVICE bool expected(const message &m) const { return ring_.is_own_address(m.slot, m.flag); }
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t number(const message &m) const { return m.slot; }
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t cursor() const { return cursor_; }

  CUDAQ_REALTIME_HOST_DEVICE frames front(const message &) const { return {here_.request, here_.response}; }
  CUDAQ_REALTIME_HOST_DEVICE void send_front(const message &) const { here_.publish(); }
  CUDAQ_REALTIME_HOST_DEVICE static void prepare(const message &) {}
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t precompute_next() {
    next_slot_ = Group::from(slot_at(1), 0); // the compiler keeps one lane's result and does not compute it again
    next_ = Group::from(ring_.slot(next_slot_), 0);
    return next_slot_;
  }
  CUDAQ_REALTIME_HOST_DEVICE void advance_one() {
    cursor_ = next_slot_;
    here_ = next_;
  }

  CUDAQ_REALTIME_HOST_DEVICE bool aligned16() const { return aligned16_; }
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t slot_size() const { return ring_.slot_size; }
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t max_payload() const { return ring_.max_payload(); }
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t readable() const {
    return ring_.rx_stride > UINT32_MAX - 15 ? UINT32_MAX - 15 : static_cast<std::uint32_t>(ring_.rx_stride);
  }

  /// ANY ordering: the next look covers the slots [first, first + width) that exist.
  CUDAQ_REALTIME_HOST_DEVICE void look_at(std::uint32_t first) {
    go_to(first);
    end_ = ring_.num_slots;
  }
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t num_slots() const { return ring_.num_slots; }

  CUDAQ_REALTIME_HOST_DEVICE static void post_owed() {}

  /// Detects a producer that does not fill slots in ring order. Each call reads some further flags of the ring. A
  /// ring-order producer has filled the cursor's slot before any later one. So if a later slot is ready, the slots are
  /// read again from the cursor on, and the cursor moves to the first ready one.
  CUDAQ_REALTIME_HOST_DEVICE bool seek() {
    return seek_by([this](std::uint32_t k, message &m) { return poll(k, m); }, [](std::uint32_t) { return false; });
  }

protected:
  /// The same with other tests. is_there(k, m): message k is there. stops(k): the cursor must not move to k or beyond
  /// it.
  template <class Poll, class Stops>
  CUDAQ_REALTIME_HOST_DEVICE bool seek_by(Poll &&is_there, Stops &&stops) {
    message m;
    const std::uint32_t k = sought_ + Group::lane();
    const std::uint32_t seen = Group::ballot(k < ring_.num_slots && is_there(k, m));
    sought_ = ring_.num_slots - sought_ <= Group::kWidth ? 0 : sought_ + Group::kWidth;
    if (seen == 0)
      return false;
    Group::sync(); // the second look of all lanes comes after this one
    for (std::uint32_t from = 0; from < ring_.num_slots; from += Group::kWidth) {
      const std::uint32_t again = from + Group::lane();
      const bool stop = again < ring_.num_slots && stops(again); // called once: other threads may change the result
      const std::uint32_t stopping = Group::ballot(stop);
      const std::uint32_t there = stopping | Group::ballot(!stop && again < ring_.num_slots && is_there(again, m));
      if (there != 0) {
        const std::uint32_t first = from + lowest_bit(there);
        if ((stopping >> lowest_bit(there) & 1u) != 0)
          return false;
        advance(first);
        sought_ = 0;
        return first != 0;
      }
    }
    return false;
  }

  /// The k-th slot from the cursor on, k <= num_slots.
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t slot_at(std::uint32_t k) const {
    const std::uint32_t i = cursor_ + k;
    return i < ring_.num_slots ? i : i - ring_.num_slots;
  }

  CUDAQ_REALTIME_HOST_DEVICE frames frames_of(std::uint32_t slot) const {
    return {ring_.rx_slot(slot), ring_.tx_slot(slot)};
  }

  scoped_slot_ring<Scope> ring_;
  slot_words<Scope> here_; ///< addresses of the cursor's slot

private:
  CUDAQ_REALTIME_HOST_DEVICE void go_to(std::uint32_t slot) {
    cursor_ = slot;
    here_ = ring_.slot(slot);
  }

  slot_words<Scope> next_ = {}; ///< addresses of the next slot, once computed
  std::uint32_t cursor_, next_slot_ = 0;
  std::uint32_t end_ = 0;    ///< ANY: end of the look, which does not wrap; FIFO: 0
  std::uint32_t sought_ = 0; ///< distance from the cursor at which the next seek() continues
  bool aligned16_ = false;
};

} // namespace cudaq::realtime::detail
