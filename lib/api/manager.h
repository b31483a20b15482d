// SPDX-License-Identifier: Apache-2.0
// The manager: which dispatchers there are, and which of them share a ring.
#pragma once

#include "lib/host_dispatcher/ledger.h"

#include <map>
#include <mutex>
#include <set>

struct cudaq_dispatch_manager_t {
  std::mutex mutex; ///< of everything below
  std::set<cudaq_dispatcher_t *> dispatchers;

  /// A ring that dispatchers share, and how many of them run on it: from join_ring to leave_ring.
  struct shared_ring {
    std::shared_ptr<cudaq::realtime::detail::ring_ledger> ledger;
    std::uint32_t running = 0;
  };
  std::map<const volatile std::uint64_t *, shared_ring> shared_rings; ///< by rx flags
  /// Ledgers that were replaced. They live until no dispatcher is left, since a late completion may still name one.
  std::vector<std::shared_ptr<cudaq::realtime::detail::ring_ledger>> retired_ledgers;
  /// Rings that a running dispatcher has for itself.
  std::set<const volatile std::uint64_t *> exclusive_rings;
  std::uint64_t next_generation = 1;

  /// A ledger whose generations no other ledger of this manager uses.
  std::shared_ptr<cudaq::realtime::detail::ring_ledger> make_ledger(std::uint32_t num_slots);
  /// The same for callers that hold the mutex.
  std::shared_ptr<cudaq::realtime::detail::ring_ledger> make_ledger_locked(std::uint32_t num_slots);
  /// The common ledger of a shared ring; refused if others run on it with another geometry, or one has it for itself. A
  /// ring to which no dispatcher is wired any more begins anew.
  cudaq::realtime::detail::finding join_ring(const cudaq::realtime::detail::slot_ring &ring,
                                             std::shared_ptr<cudaq::realtime::detail::ring_ledger> &out);
  void leave_ring(const cudaq::realtime::detail::slot_ring &ring);
  /// Reserves a ring for one dispatcher; refused if another one runs on it.
  cudaq::realtime::detail::finding reserve_ring(const cudaq::realtime::detail::slot_ring &ring);
  void release_ring(const cudaq::realtime::detail::slot_ring &ring);
};
