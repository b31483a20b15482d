// SPDX-License-Identifier: Apache-2.0
// The transport of a host dispatcher that serves a unified provider (bridge_interface.h): requests come from rx_poll,
// answers leave through tx_publish. Between the two a request is in a slot of an ordinary slot_ring, whose flags belong
// to the library. So everything that serves a slot (take_turn, jobs, pool, graphs) is the same as on a ring.
//
// Life of one request, answered in its turn
//
//       step                           function               rx flag  tx flag  slot held by
//    1  provider has a frame           receive -> rx_poll     0        0        the provider, then the loop
//    2  own rx flag set                receive -> signal      0x10140  0        the loop
//    3  judged, served, answered       take_turn              0        0x20140  the loop
//    4  own tx flag cleared, sent      give_back              0        0        the provider
//
// Deferred, pool, graph: after step 3 the slot has an open job. send looks at such slots in every turn and does step 4
// when the job is closed. Dropped: after step 3 both flags are 0; the provider learns it by its own rx flag.
#pragma once

#include "cudaq/realtime/daemon/bridge/bridge_types.h"
#include "lib/base/callback.h"
#include "lib/shared_ring/job_table.h"
#include "lib/shared_ring/thread_counters.h"

#include <vector>

namespace cudaq::realtime::detail {

/// All members are for the loop's thread; after it has ended, for the thread that stops the dispatcher.
class cpu_dataplane {
public:
  /// Before a run. `jobs`: of the ring with the library's own flags.
  void prepare(const cudaq_cpu_dataplane_t &plane, const job_table &jobs) {
    plane_ = plane;
    jobs_ = &jobs;
    held_.clear();
    held_.reserve(jobs.num_slots); // receive must not throw
    holds_.assign(jobs.num_slots, 0);
    for (std::uint32_t i = 0; i < jobs.num_slots; ++i) {
      store_relaxed<std::uint64_t>(jobs.ring.rx_flags[i], 0);
      jobs.ring.collect(i);
    }
  }

  /// Takes the provider's next request, if there is one: its slot then holds a request for take_turn.
  bool receive(std::uint32_t &slot, thread_counters &here) {
    std::uint32_t i = 0;
    if (must_not_throw([&] { return plane_.rx_poll(plane_.ctx, &i); }, "rx_poll of the dataplane") != CUDAQ_RX_READY)
      return false;
    if (i >= jobs_->num_slots || holds_[i] != 0) [[unlikely]] { // the provider breaks its contract
      here.dataplane_errors.bump();
      return false;
    }
    holds_[i] = 1;
    held_.push_back(i);
    jobs_->ring.signal(i);
    slot = i;
    return true;
  }

  /// After the turn of the last slot from receive: gives the slot back if its request was answered or dropped.
  void finish_turn(thread_counters &here) {
    if (give_back(held_.back(), here))
      held_.pop_back();
  }

  /// Gives back all slots whose requests were answered. Returns their number.
  std::uint32_t send(thread_counters &here) {
    std::size_t kept = 0;
    for (const std::uint32_t i : held_)
      if (!give_back(i, here))
        held_[kept++] = i;
    const std::size_t sent = held_.size() - kept;
    held_.resize(kept);
    return static_cast<std::uint32_t>(sent);
  }

  /// The same. False: requests are still open.
  bool send_all(thread_counters &here) {
    send(here);
    return held_.empty();
  }

private:
  bool give_back(std::uint32_t i, thread_counters &here) {
    // The job is looked at first: who answers it sets the flags before it closes the job.
    if ((*jobs_)[i].state.phase() != job_phase::open)
      return false;
    const slot_ring &ring = jobs_->ring;
    if (!ring.collected(i)) {
      ring.collect(i);
      holds_[i] = 0;
      if (must_not_throw([&] { return plane_.tx_publish(plane_.ctx, i); }, "tx_publish of the dataplane") != CUDAQ_OK)
        here.dataplane_errors.bump();
      return true;
    }
    if (ring.ready(i) != 0)
      return false;
    holds_[i] = 0;
    if (plane_.ring.rx_flags_host != nullptr) // dropped
      store_release<std::uint64_t>(plane_.ring.rx_flags_host[i], 0);
    return true;
  }

  cudaq_cpu_dataplane_t plane_{};
  const job_table *jobs_ = nullptr;
  std::vector<std::uint32_t> held_; ///< slots between receive and their return, in order of arrival
  std::vector<std::uint8_t> holds_; ///< by slot: 1 while in held_
};

} // namespace cudaq::realtime::detail
