// SPDX-License-Identifier: Apache-2.0
// The private state of the dispatchers of a ring: the cursor, and the job in each slot. All members of a shared
// ring use one table. The router role (ring_router.h) decides which of them reads the next slot.
#pragma once

#include "lib/base/generation_word.h"
#include "lib/ring/turn.h"
#include "lib/shared_ring/ring_member.h"

#include <cstring>
#include <memory>

namespace cudaq::realtime::detail {

/// Phases of a job. A request is taken from a slot only in phase open.
///
///   open -> queued -> running -> completing -> (published by the thread that ran the handler) -> open
///   running -> deferred -> completing -> (published by the completer) -> open
///   running -> storing_completion -> completion_stored -> (published by the thread that ran the handler) -> open
///              storing_completion -> completer_publishes -> completing -> (published by the completer) -> open
///
/// Lines 3 and 4: a completion comes while the handler still runs. The handler may still read its payload, and the
/// producer may refill an answered slot. Therefore the completer stores the answer in the record, and it is
/// published after the handler has returned. If the answer is stored by then (completion_stored), the thread that ran
/// the handler publishes it. If not (completer_publishes), the completer does.
enum class job_phase : std::uint32_t {
  open,                ///< no job
  queued,              ///< accepted, waits for a thread
  running,             ///< its handler runs
  deferred,            ///< its handler has returned without an answer; the thread that claims the job answers
  storing_completion,  ///< a completion is being stored while the handler runs
  completion_stored,   ///< the completion is stored; the handler still runs
  completer_publishes, ///< the handler has returned while the completion was being stored
  completing,          ///< claimed; the answer is being published
  parked,              ///< shared ring: no present dispatcher owns it; left in its slot
  given,               ///< shared ring: handed to a kernel; its answers word shows the answer
};

/// Phase and generation in one word, so that a completion claims exactly the job that it names.
///   enter    A step that only one thread may take. The thread that reads the ring: to queued, to parked, to given, and
///            back to open for a dropped request (before rx is cleared). The thread that serves the job: to running.
///   claim    A step that several threads may try.
///   finish   Only after the rx flag is cleared: an open slot with a set rx flag is a new request.
using job_state = generation_word<job_phase>;
static_assert(job_state::fits(job_phase::given));

/// The job record of a slot. The thread that reads the ring writes it before it hands the job on.
struct alignas(64) job_record {
  job_state state;
  request req;
  judgement what; ///< serve, or answer with a status
  shared_word<const ring_member *> owner;
  handler_result completion;    ///< a completion that came while the handler ran
  bool marked = false;          ///< tx holds IN_FLIGHT, and rx is cleared or is being cleared
  std::uint32_t cuda_error = 0; ///< why a graph's launch or run failed
  std::uint64_t taken_at = 0;   ///< in ticks of its owner's handler_times
  /// True: a graph's job that only the library may complete. Written before any caller can know the job.
  shared_word<bool> library_answers;
  shared_word<std::uint32_t> next; ///< the slot after this one in its slot_list (lib/host_dispatcher/work_queues.h)
};

inline bool same_header(const request &a, const request &b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

class job_table {
public:
  /// Generations count up from `first_generation`. The manager gives each table its own range, so that a job of one
  /// table is never taken for a job of another.
  job_table(std::uint32_t slots_of_ring, std::uint64_t first_generation);
  /// Binds the table to a ring with `num_slots` slots and moves the cursor to slot 0. Not while a dispatcher runs.
  void bind(const slot_ring &r);

  const std::uint32_t num_slots;
  slot_ring ring;
  std::uint32_t parked = 0;          ///< jobs in phase parked; under the router role
  shared_word<std::uint32_t> cursor; ///< next slot to look at; only the thread that reads the ring writes it

  job_record &operator[](std::uint32_t slot) { return records_[slot]; }
  const job_record &operator[](std::uint32_t slot) const { return records_[slot]; }

  /// True if slot i holds a request that no dispatcher has taken. The job is read before rx: the thread that answers
  /// clears rx before it closes the job. In the other order this could see the rx of an answered request with the job
  /// already closed.
  bool untaken(std::uint32_t i) const {
    return records_[i].state.phase() == job_phase::open && ring.ready(i) != 0 && ring.collected(i);
  }
  /// The phase of slot i. If a device has answered the slot's job, this closes the job first, because a device cannot.
  /// If a dispatcher outside has answered a parked request, the slot is open again. Only for the thread that reads the
  /// ring.
  job_phase updated_phase(std::uint32_t i);

  /// For a producer that does not fill slots in ring order: if the cursor's slot is empty while a later one is ready,
  /// moves the cursor to the later one. True if the cursor moved. With a producer that keeps the order it never moves,
  /// because the cursor's slot is filled first. Only for the thread that reads the ring.
  ///
  /// A call reads at most `slots` slots, and one more; the next call goes on where it ended. So the work of a call does
  /// not grow with the ring. On a ring of 1000 slots, with cursor 10 and a request in slot 310, calls of 128 slots do:
  ///
  ///   call   first look: empty    second look: still empty   cursor
  ///   1      11 ... 138                                      10
  ///   2      139 ... 266                                     10
  ///   3      267 ... 309, ready   10 ... 93                  10
  ///   4                           94 ... 221                 10
  ///   5                           222 ... 309                310
  bool resync_cursor(std::uint32_t slots);
  /// The next resync_cursor begins at the cursor. To be called when a request was taken since the last call: the cursor
  /// may have come back to the same slot.
  void restart_resync() { resync_ = {}; }

  static constexpr std::uint32_t kResyncSlots = 128;        ///< for a call between two polls
  static constexpr std::uint32_t kResyncSlotsAsleep = 4096; ///< for a call between two sleeps

private:
  bool parked_is_replaced(std::uint32_t i) const;

  /// How far resync_cursor has come, as distances from `cursor`.
  struct resync_state {
    std::uint32_t cursor = 0xFFFFFFFFu; ///< the slot where it began
    std::uint32_t empty = 1;            ///< first look: the slots before this one were empty
    std::uint32_t ready = 0;            ///< the ready slot that ended the first look; 0: none yet
    std::uint32_t still_empty = 0;      ///< second look: the slots before this one were still empty
  };

  std::unique_ptr<job_record[]> records_;
  resync_state resync_;
};

} // namespace cudaq::realtime::detail
