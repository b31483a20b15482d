// SPDX-License-Identifier: Apache-2.0
// The manager: the list of its dispatchers, the rings that they share, and resources that outlive a run.
#pragma once

#include "lib/api/ring_claims.h"
#include "lib/shared_ring/ring_router.h"

#include <map>
#include <mutex>
#include <set>

struct cudaq_dispatch_manager_t {
  std::mutex mutex; ///< protects all members below
  std::set<cudaq_dispatcher_t *> dispatchers;

  /// A ring that dispatchers share. `running`: the number of dispatchers between join_ring and leave_ring. The wired
  /// dispatchers own the router: it is freed when the last of them is destroyed or wired to another ring.
  struct shared_ring {
    std::weak_ptr<cudaq::realtime::detail::ring_router> router;
    std::uint32_t running = 0;
  };
  std::map<const volatile void *, shared_ring> shared_rings; ///< by address of the rx flags
  /// Rings that a running dispatcher does not share, by identity_of.
  std::set<const volatile void *> exclusive_rings;
  cudaq::realtime::detail::ring_claims claims; ///< memory that the running dispatchers use
  std::uint64_t next_generation = 1;
  /// Blocks that the dispatch kernel of a running dispatcher occupies on a device.
  struct residence {
    int device_id = 0;
    std::uint32_t blocks = 0;
  };
  std::map<const void *, residence> residents;
  std::map<int, std::uint32_t> reserved_blocks; ///< by device: blocks of the caller's own kernels
  struct mapped_block {
    std::size_t bytes = 0;
    int device_id = 0; ///< the current device when it was allocated
    bool taken = false;
  };
  std::map<void *, mapped_block> mapped_blocks;
  /// Scheduler graphs that no dispatcher uses.
  struct spare_graphs {
    int device_id = 0;
    void *made = nullptr;
    void (*destroy)(void *made) = nullptr;
  };
  std::vector<spare_graphs> spares;
  std::set<int> grown_devices; ///< devices whose stream pool was grown

  cudaq_dispatch_manager_t() = default;
  cudaq_dispatch_manager_t(const cudaq_dispatch_manager_t &) = delete;
  cudaq_dispatch_manager_t &operator=(const cudaq_dispatch_manager_t &) = delete;
  ~cudaq_dispatch_manager_t();

  /// Makes a job table. No other table of this manager uses its generations.
  std::shared_ptr<cudaq::realtime::detail::job_table> make_jobs(std::uint32_t num_slots);
  /// The same, for callers that hold the mutex.
  std::shared_ptr<cudaq::realtime::detail::job_table> make_jobs_locked(std::uint32_t num_slots);
  /// Returns the common router of a shared ring. Refused: another dispatcher runs on the ring with another geometry, or
  /// without sharing it. If no dispatcher is wired to the ring, its cursor starts at slot 0 again.
  cudaq::realtime::detail::expected<> join_ring(const cudaq::realtime::detail::slot_ring &ring,
                                                std::shared_ptr<cudaq::realtime::detail::ring_router> &out);
  void leave_ring(const volatile void *ring);
  /// Reserves a ring for one dispatcher, on the host or on a device. Refused if another dispatcher runs on it.
  cudaq::realtime::detail::expected<> reserve_ring(const volatile void *ring);
  void release_ring(const volatile void *ring);
  /// Claims the memory of a run until unclaim. Refused: it overlaps that of another running dispatcher, or another
  /// manager owns the ring.
  cudaq::realtime::detail::expected<> claim(const void *who, const cudaq::realtime::detail::memory_claim &what);
  void unclaim(const void *who);
  void leave_claims_to_a_graph();

  /// Notes that `who` occupies blocks of a device until remove_resident. Returns the number of blocks that others
  /// occupy there, reserved blocks included.
  std::uint32_t add_resident(const void *who, int device_id, std::uint32_t blocks);
  void remove_resident(const void *who);

  /// A block of pinned memory, mapped for all devices. Callers give it back to the manager, which reuses it and frees
  /// it only when the manager is destroyed: freeing pinned memory waits for all running kernels, and dispatch kernels
  /// run until they are stopped.
  cudaq::realtime::detail::expected<> take_mapped_block(std::size_t bytes, void *&out);
  void give_back_mapped_block(void *block);
  /// The same for scheduler graphs, because destroying them waits, too. `made` is NULL if there are no spare graphs.
  spare_graphs take_spare_graphs(int device_id);
  void keep_spare_graphs(const spare_graphs &graphs) noexcept;
  /// Called before a launch function may make scheduler graphs, so that keep_spare_graphs needs no memory.
  void make_room_for_spare_graphs();
  /// Called when a graph dispatcher is created. Calls reserve_streams (graph_capture.h), once per device, and only
  /// while no kernel of this manager runs there and cudaq_dispatch_manager_reserve_blocks declares no other kernel.
  void grow_stream_pool(int device_id);
};
