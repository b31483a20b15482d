// SPDX-License-Identifier: Apache-2.0
// The rings of all clients, as the dispatcher's loop sees them in the unified shape, and how the loop and the thread
// that attaches clients (shm_server) hand them to each other.
//
//   phase     set by    meaning
//   idle      server    no client; the loop does not touch the segment
//   open      server    a client is attached; the loop takes its requests
//   leaving   server    the client has ended; the loop finishes the requests that it holds, and answers nothing
//   settled   loop      the loop holds nothing and does not touch the segment again
//
// A segment is mapped before `open` and unmapped after `settled`, so an answer to an old client cannot reach a new one.
//
// Nothing that decides where the loop reads or writes lies in shared memory. Of a segment the loop reads two flags of a
// slot, each once, and compares them with 0.
#pragma once

#include "cudaq/realtime/daemon/bridge/bridge_types.h"
#include "lib/transport/shm/shm_layout.h"

#include <functional>
#include <vector>

namespace cudaq::realtime::detail {

enum class ring_phase : std::uint32_t { idle, open, leaving, settled };

class shm_dataplane {
public:
  struct setup {
    shm_layout layout;
    std::uint32_t span = 0, clients = 0;
    std::uint8_t *base = nullptr;
    std::uint64_t window = 0;
    std::uint64_t wait_ns = 0; ///< longest sleep in rx_poll; 0: none
    shm_bell *bell = nullptr;
    std::function<void()> settled; ///< called by the loop when a ring is settled
  };
  explicit shm_dataplane(setup s);

  // --- the server's thread ---
  ring_phase phase(std::uint32_t k) const { return static_cast<ring_phase>(rings_[k].phase.load()); }
  /// `rings_bell`: the client sleeps on its bell.
  void open(std::uint32_t k, bool rings_bell);
  void leave(std::uint32_t k) { set_phase(k, ring_phase::leaving); }
  void set_idle(std::uint32_t k) { set_phase(k, ring_phase::idle); }

  // --- the loop's thread ---
  cudaq_rx_status_t rx_poll(std::uint32_t *out_slot);
  cudaq_status_t tx_publish(std::uint32_t slot);

  /// The flags that the loop clears when it drops a request: private to this process.
  volatile std::uint64_t *private_flags() { return flags_.data(); }

private:
  struct client_ring {
    shared_word<std::uint32_t> phase; ///< a ring_phase
    bool rings_bell = false;          ///< written while the phase is idle
    // The loop's own:
    std::uint8_t *segment = nullptr;
    std::uint32_t first = 0;  ///< number of its slot 0
    std::uint32_t cursor = 0; ///< the next slot to look at
    std::uint32_t sought = 0; ///< slots after the cursor that seek() has passed
    std::uint32_t held = 0;   ///< slots between rx_poll and their return
    bool is_listed = false;
  };

  void set_phase(std::uint32_t k, ring_phase to);
  volatile std::uint64_t &rx_flag(const client_ring &r, std::uint32_t i) const;
  volatile std::uint64_t &tx_flag(const client_ring &r, std::uint32_t i) const;
  void read_phases();
  void settle(client_ring &r);
  void collect_some_dropped(client_ring &r);
  bool take(client_ring &r, std::uint32_t &slot);
  void collect_dropped(client_ring &r, std::uint32_t i);
  void seek(client_ring &r);
  void after_empty_poll();
  bool any_ready() const;
  std::uint32_t next(std::uint32_t i) const { return i + 1 == s_.layout.num_slots ? 0 : i + 1; }

  setup s_;
  std::vector<client_ring> rings_;
  std::vector<std::uint64_t> flags_; ///< by slot number; not 0 while the loop holds the slot, until it drops it
  std::vector<std::uint8_t> held_;   ///< by slot number; 1 while the loop holds the slot
  shared_word<std::uint32_t> changes_{1};
  // The loop's own:
  std::vector<client_ring *> listed_; ///< open or leaving
  std::uint32_t changes_seen_ = 0;
  bool any_leaving_ = false; ///< and not settled
  std::uint32_t polls_leaving_ = 0;
  std::size_t turn_ = 0;       ///< index in listed_ of the ring that is asked first
  std::uint32_t last_ = kNone; ///< the slot that rx_poll returned last, while it may be dropped
  std::uint32_t total_held_ = 0;
  std::uint32_t empty_polls_ = 0;
  static constexpr std::uint32_t kNone = ~0u;
};

} // namespace cudaq::realtime::detail
