// SPDX-License-Identifier: Apache-2.0
// The producer's side of a ring, for any number of threads: which slots are free, and when a request is signalled.
//
// Claims are numbered from 0 on: claim p is slot (first + p) % num_slots. claimed_ is the number of the next claim,
// signalled_ the number of claims whose requests are signalled. Requests are signalled in the order of their claims:
//
//   claim p    state_[slot]   meaning
//   7          -              free: the next claim
//   6          6 * 2 + 1      claimed, being written
//   5          5 * 2 + 2      committed; not signalled, because claim 4 is not committed
//   4          4 * 2 + 1      claimed; signalled_ is 4
//   3          3 * 2 + 2      signalled, or answered and collected
//
// A thread that commits adds to arrivals_. The one that finds 0 there signals for all, until no arrival is new. So two
// threads never signal at the same time, and no committed request is forgotten.
//
// Free: claim p - num_slots is signalled, and then
//   without laps   both flags are 0
//   with laps      the slot was given back as often as it was signalled, and its last answer is collected. How often it
//                  was given back before the first claim is read from the device's count, across the bus.
#pragma once

#include "cudaq/realtime/detail/base/shared_word.h"
#include "cudaq/realtime/detail/base/slot_memory.h"
#include "cudaq/realtime/detail/ring/free_by_count.h"

#include <vector>

namespace cudaq::realtime::detail {

class producer_core {
public:
  /// `ring`: the CPU's view. With laps, rx_flags[lap_offset] is the device's count.
  producer_core(const slot_ring &ring, std::uint32_t first_slot)
      : ring_(ring), first_slot_(first_slot), state_(ring.num_slots), given_back_(ring.num_slots) {}

  std::uint32_t num_slots() const { return ring_.num_slots; }
  std::uint8_t *frame(std::uint32_t slot) const { return ring_.rx_slot(slot); }
  std::size_t stride() const { return ring_.rx_stride; }
  /// The requests lie on the other side of the bus: frames are written in whole lines, past the caches.
  bool with_laps() const { return ring_.lap_offset != 0; }
  std::uint32_t next_slot() const { return slot_of(claimed_.load()); }
  bool idle() const { return claimed_.load() == signalled_.load(); }

  /// True, with the claimed slot, if the next slot is free.
  bool claim(std::uint32_t &slot) {
    std::uint32_t count = 0;
    claim(1, slot, count);
    return count == 1;
  }
  /// Claims up to `max_count` slots that are free, from the next one on. `count`: how many.
  void claim(std::uint32_t max_count, std::uint32_t &slot, std::uint32_t &count) {
    max_count = max_count < ring_.num_slots ? max_count : ring_.num_slots;
    for (;;) {
      const std::uint64_t p = claimed_.load();
      slot = slot_of(p);
      for (count = 0; count < max_count && is_free(p + count); ++count) {
      }
      if (count == 0 && (max_count == 0 || claimed_.load() == p))
        return;
      if (count == 0 || !claimed_.claim(p, p + count))
        continue; // another thread has claimed the slot
      for (std::uint64_t q = p; q < p + count; ++q) {
        if (with_laps() && q < ring_.num_slots)
          given_back_[slot_of(q)] = load_relaxed(ring_.tx_flags[slot_of(q) + ring_.lap_offset]);
        state_[slot_of(q)].store(q * 2 + 1);
      }
      return;
    }
  }
  bool is_claimed(std::uint32_t slot) const { return slot < ring_.num_slots && state_[slot].load() % 2 == 1; }

  /// `count` claimed slots, from `slot` on, whose frames the calling thread has written.
  void commit(std::uint32_t slot, std::uint32_t count) {
    if (with_laps())
      fence_posted_stores(); // another thread may signal them as soon as they are marked
    for (; count != 0; --count, slot = ring_.next(slot))
      state_[slot].store(state_[slot].load() + 1);
    if (arrivals_.add(1) != 0)
      return;
    std::uint32_t seen = 1;
    do
      signal_committed();
    while ((seen = arrivals_.add(-seen) - seen) != 0);
  }

private:
  std::uint32_t slot_of(std::uint64_t p) const {
    return static_cast<std::uint32_t>((first_slot_ + p) % ring_.num_slots);
  }

  bool is_free(std::uint64_t p) const {
    const std::uint32_t n = ring_.num_slots, slot = slot_of(p);
    if (p >= n && signalled_.load() <= p - n)
      return false;
    if (!with_laps())
      return ring_.free_for_producer(slot);
    if (p >= n)
      return ring_.free_after(slot, given_back_[slot] + p / n);
    return is_free_by_count(ring_, slot);
  }

  /// The requests that are committed, up to the first claim that is not.
  void signal_committed() {
    std::uint64_t p = signalled_.load();
    const auto committed = [this](std::uint64_t q) { return state_[slot_of(q)].load() == q * 2 + 2; };
    if (!committed(p))
      return;
    for (; committed(p); ++p) {
      ring_.signal(slot_of(p));
      if (with_laps())
        fence_posted_stores(); // the flag leaves now, and before the next one
    }
    signalled_.store(p);
  }

  const slot_ring ring_;
  const std::uint32_t first_slot_;
  // Each on a line of its own: a thread that commits writes the last two, a thread that claims the first one.
  alignas(kLineBytes) shared_word<std::uint64_t> claimed_;
  alignas(kLineBytes) shared_word<std::uint64_t> signalled_;
  alignas(kLineBytes) shared_word<std::uint32_t> arrivals_;
  alignas(kLineBytes) std::vector<shared_word<std::uint64_t>> state_; ///< by slot
  std::vector<std::uint64_t> given_back_;                             ///< by slot, with laps: before its first claim
};

} // namespace cudaq::realtime::detail
