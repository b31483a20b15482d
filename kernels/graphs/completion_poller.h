// SPDX-License-Identifier: Apache-2.0
// The second warp of a scheduler's block: finds graphs that have signalled their end, and answers their requests.
//
// It takes `phase` from in_flight to completed, and only then writes over the bus: the graph has no part in that. It
// clears the held bit after the rx flag, as docs/ring_protocol.md section 7 requires. It does not touch an instance
// whose completion word does not hold the launch number. Host and device code.
#pragma once

#include "kernels/graphs/graph_scheduler_state.h"

namespace cudaq::realtime::detail {

/// Polls the completion words in parallel to the scheduler, so that an answer does not wait for a look at the ring.
template <class Group, thread_scope Scope>
class completion_poller {
public:
  CUDAQ_REALTIME_HOST_DEVICE completion_poller(const graph_state_view &view, const slot_ring &r)
      : v_(view), ring_(r.template with_scope<Scope>()) {}

  /// Polls every instance once. Called by all lanes of the group.
  CUDAQ_REALTIME_HOST_DEVICE void round() {
    for (std::uint32_t first = 0; first < v_.num_graphs; first += Group::kWidth) {
      const std::uint32_t i = first + Group::lane();
      job of;
      const bool mine = i < v_.num_graphs && completes(v_.graphs[i], v_.done_words[i], of);
      const std::uint32_t completed = count_bits(Group::ballot(mine));
      if (completed == 0)
        continue;
      if (Group::lane() == 0)
        store_release<std::uint32_t, kGraphScope>(v_.state.completed, v_.state.completed + completed);
      if (mine)
        finish(of);
      Group::sync();
    }
  }

private:
  /// The request of a completed graph. The graph may serve another request already.
  struct job {
    std::uint32_t slot = 0;
    bool published = false;
  };

  CUDAQ_REALTIME_HOST_DEVICE bool completes(graph_instance &g, const std::uint64_t &end, job &of) {
    constexpr auto kInFlight = static_cast<std::uint32_t>(graph_phase::in_flight);
    // An acquire empties the cache of the multiprocessor, which the scheduler needs for launches. So relaxed loads look
    // first, and acquire loads confirm them.
    if (load_relaxed(g.phase) != kInFlight || load_relaxed(end) != load_relaxed(g.launch_number))
      return false;
    if (load_acquire<std::uint32_t, kGraphScope>(g.phase) != kInFlight ||
        load_acquire<std::uint64_t, kGraphScope>(end) != load_relaxed(g.launch_number))
      return false;
    of = {g.slot, g.publishes != 0};
    store_release<std::uint32_t, kGraphScope>(g.phase, static_cast<std::uint32_t>(graph_phase::completed));
    return true;
  }
  CUDAQ_REALTIME_HOST_DEVICE void finish(const job &of) {
    if (!of.published)
      ring_.publish_tx(of.slot);
    ring_.give_back(of.slot);
    v_.give_up(of.slot);
  }

  graph_state_view v_;
  scoped_slot_ring<Scope> ring_;
};

} // namespace cudaq::realtime::detail
