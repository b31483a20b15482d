// SPDX-License-Identifier: Apache-2.0
// The manager: which dispatchers there are, and which of them share a ring.
#pragma once

#include "lib/shared_ring/ring_router.h"

#include <map>
#include <mutex>
#include <set>

struct cudaq_dispatch_manager_t {
  std::mutex mutex; ///< of everything below
  std::set<cudaq_dispatcher_t *> dispatchers;

  /// A ring that dispatchers share, and how many of them run on it: from join_ring to leave_ring.
  struct shared_ring {
    std::shared_ptr<cudaq::realtime::detail::ring_router> router;
    std::uint32_t running = 0;
  };
  std::map<const volatile void *, shared_ring> shared_rings; ///< by rx flags
  /// Routers that were replaced. They live until no dispatcher is left, since a late completion may still name a job of
  /// theirs.
  std::vector<std::shared_ptr<cudaq::realtime::detail::ring_router>> retired_routers;
  /// Rings that a running dispatcher has for itself, by identity_of.
  std::set<const volatile void *> exclusive_rings;
  std::uint64_t next_generation = 1;
  /// Blocks that dispatch kernels of running dispatchers keep on a device.
  struct residence {
    int device_id = 0;
    std::uint32_t blocks = 0;
  };
  std::map<const void *, residence> residents;
  std::map<int, std::uint32_t> reserved_blocks; ///< by device: of the caller's own kernels
  struct mapped_block {
    std::size_t bytes = 0;
    bool taken = false;
  };
  std::map<void *, mapped_block> mapped_blocks;
  /// Scheduler graphs that no dispatcher has any more.
  struct spare_graphs {
    int device_id = 0;
    void *made = nullptr;
    void (*destroy)(void *made) = nullptr;
  };
  std::vector<spare_graphs> spares;
  std::set<int> grown_devices; ///< whose pool of streams has been grown

  cudaq_dispatch_manager_t() = default;
  cudaq_dispatch_manager_t(const cudaq_dispatch_manager_t &) = delete;
  cudaq_dispatch_manager_t &operator=(const cudaq_dispatch_manager_t &) = delete;
  ~cudaq_dispatch_manager_t();

  /// A job table whose generations no other table of this manager uses.
  std::shared_ptr<cudaq::realtime::detail::job_table> make_jobs(std::uint32_t num_slots);
  /// The same for callers that hold the mutex.
  std::shared_ptr<cudaq::realtime::detail::job_table> make_jobs_locked(std::uint32_t num_slots);
  /// The common router of a shared ring; refused if others run on it with another geometry, or one has it for itself. A
  /// ring to which no dispatcher is wired any more begins anew.
  cudaq::realtime::detail::status_or_reason join_ring(const cudaq::realtime::detail::slot_ring &ring,
                                                      std::shared_ptr<cudaq::realtime::detail::ring_router> &out);
  void leave_ring(const volatile void *ring);
  /// Reserves a ring for one dispatcher, host or device; refused if another one runs on it.
  cudaq::realtime::detail::status_or_reason reserve_ring(const volatile void *ring);
  void release_ring(const volatile void *ring);

  /// From here to remove_resident, `who` keeps blocks on a device. Returns how many others keep there.
  std::uint32_t add_resident(const void *who, int device_id, std::uint32_t blocks);
  void remove_resident(const void *who);

  /// A block of pinned memory that every device sees. It goes back to the manager, which reuses it: freeing pinned
  /// memory waits for every kernel that runs, and dispatch kernels run for ever.
  cudaq::realtime::detail::status_or_reason take_mapped_block(std::size_t bytes, void *&out);
  void give_back_mapped_block(void *block);
  /// The same for scheduler graphs: destroying them waits likewise. None: `made` is NULL.
  spare_graphs take_spare_graphs(int device_id);
  void keep_spare_graphs(const spare_graphs &graphs);
  /// Before the first graph dispatcher of a device where no kernel of this manager is, and none is declared by
  /// cudaq_dispatch_manager_reserve_blocks: see reserve_streams.
  void grow_stream_pool(int device_id);
};
