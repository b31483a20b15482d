// SPDX-License-Identifier: Apache-2.0
// The transport of a ring whose requests lie in device memory: docs/ring_protocol.md section 13. To give a slot back
// takes four stores: count, tx, rx = 0, lap. The lap comes after rx = 0, so it needs a second fence, and a fence takes
// up to 1.5 us. A request that is served alone leaves its lap to the fence of the next one. Slot 5, then slot 6:
//
//   serve slot 5   count[5] = 9, fence, tx[5], rx[5] = 0                lap 9 of slot 5 is owed
//   serve slot 6   count[6] = 9, fence, tx[6], lap[5] = 9, rx[6] = 0    lap 9 of slot 6 is owed
//   no request     fence, lap[6] = 9                                    after 16 empty looks, or at a stop
//
// The stores after a fence are seen in any order. Several requests of one look, and dropped ones, get their laps at
// once, by a second fence: the producer may wait for all of them. So does the only slot of a ring.
#pragma once

#include "cudaq/realtime/detail/loop/ring_transport.h"

namespace cudaq::realtime::detail {

template <class Group>
class posted_ring_transport : public ring_transport<Group, thread_scope_system> {
  using base = ring_transport<Group, thread_scope_system>;
  using base::here_;
  using base::ring_;
  using words = slot_words<thread_scope_system>;

public:
  using base::base;
  using typename base::message;

  CUDAQ_REALTIME_HOST_DEVICE void prepare(const message &m) { count_ = count_of(ring_.slot(m.slot)); }
  CUDAQ_REALTIME_HOST_DEVICE void send(const message &m) { give_back_now(ring_.slot(m.slot), true); }
  CUDAQ_REALTIME_HOST_DEVICE void discard(const message &m) { give_back_now(ring_.slot(m.slot), false); }
  CUDAQ_REALTIME_HOST_DEVICE void send_front(const message &) {
    give_back(here_, count_ + 1, true);
    if (ring_.num_slots == 1)
      post_lap();
  }
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t precompute_next() {
    if (Group::lane() == 0)
      count_ = count_of(here_);
    return base::precompute_next();
  }
  /// Lane 0 may owe one lap; the other lanes owe none.
  CUDAQ_REALTIME_HOST_DEVICE void post_owed() {
    if (owed_ != nullptr)
      post_lap();
  }

private:
  CUDAQ_REALTIME_HOST_DEVICE static std::uint64_t count_of(const words &slot) {
    return load_relaxed(slot.rx_flag[slot.lap_offset]);
  }
  CUDAQ_REALTIME_HOST_DEVICE void give_back_now(const words &slot, bool answered) {
    give_back(slot, count_ + 1, answered);
    post_lap();
  }
  CUDAQ_REALTIME_HOST_DEVICE void post_lap() {
    store_release(*owed_, owed_count_);
    owed_ = nullptr;
  }
  /// The count comes before the fence: for a producer that sees rx = 0 it is final.
  CUDAQ_REALTIME_HOST_DEVICE void give_back(const words &slot, std::uint64_t count, bool answered) {
    store_relaxed(slot.rx_flag[slot.lap_offset], count);
    fence_before_stores();
    if (answered)
      store_after_fence(*slot.tx_flag, reinterpret_cast<std::uint64_t>(slot.response));
    if (owed_ != nullptr)
      store_after_fence(*owed_, owed_count_);
    store_after_fence(*slot.rx_flag, std::uint64_t{0});
    owed_ = slot.tx_flag + slot.lap_offset;
    owed_count_ = count;
  }

  volatile std::uint64_t *owed_ = nullptr; ///< the lap that is not posted yet
  std::uint64_t owed_count_ = 0;
  std::uint64_t count_ = 0; ///< of the slot of the lane's message, loaded while its request is read
};

} // namespace cudaq::realtime::detail
