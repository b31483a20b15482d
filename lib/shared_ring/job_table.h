// SPDX-License-Identifier: Apache-2.0
// The dispatcher side's private knowledge of a ring: the cursor, and the job in each slot. On a shared ring all members
// have one table, and lib/shared_ring/ring_router.h says whose turn it is to read the next slot.
#pragma once

#include "lib/base/generation_word.h"
#include "lib/ring/turn.h"
#include "lib/shared_ring/ring_member.h"

#include <memory>

namespace cudaq::realtime::detail {

/// Life of a job. A slot is taken from the ring only in phase open.
///
///   open -> queued -> running -> completing -> (published by the thread that ran the handler) -> open
///                     running -> deferred -> completing -> (published by the completer) -> open
///                     running -> early -> left -> (published by the thread that ran the handler) -> open
///                                early -> passed_on -> completing -> (published by the completer) -> open
///
/// The lower two lines: a completion comes while the handler still runs. The handler may still read its payload, and an
/// answered slot may be refilled, so the completer leaves the answer in the record, and it is published when the
/// handler has returned: by the thread that ran it, or, if that was faster than the writing down, by the completer.
enum class job_phase : std::uint32_t {
  open,       ///< no job
  queued,     ///< accepted, waits for a thread
  running,    ///< its handler runs
  deferred,   ///< its handler has returned without an answer; whoever claims it answers
  early,      ///< a completion is being written down while the handler runs
  left,       ///< ... has been written down
  passed_on,  ///< ... but the handler has returned before it was
  completing, ///< claimed; the answer is being published
  parked,     ///< shared ring: belongs to no dispatcher that is there now; left in place
  given,      ///< shared ring: handed to a dispatcher on a device, whose own word says when it is answered
};

/// Phase and generation in one word, so that a completion claims exactly the job that it names. A step that only one
/// thread may take (enter): by the thread that reads the ring to queued, parked, and back to open for a request that is
/// dropped, before rx is cleared; by the thread that serves the job to running. A step that several threads may want:
/// claim. finish only after the rx flag was cleared: an open slot with a set rx flag is a new request.
using job_state = generation_word<job_phase, 4>;
static_assert(job_state::fits(job_phase::given));

/// The job record of a slot. Written by the thread that reads the ring before it hands the job on.
struct alignas(64) job_record {
  job_state state;
  request req;
  judgement what; ///< serve, or answer with a status
  shared_word<const ring_member *> owner;
  handler_result early;         ///< the answer that came while the handler ran
  bool marked = false;          ///< IN_FLIGHT stands in the tx flag and rx is (being) cleared
  std::uint32_t cuda_error = 0; ///< why a graph's launch or run failed
  /// A graph's job that nobody but the library may complete. Written before the job can be known.
  shared_word<bool> library_answers;
};

class job_table {
public:
  /// Generations count up from `first_generation`, so that a job of one table is never taken for a job of another.
  job_table(std::uint32_t slots_of_ring, std::uint64_t first_generation);
  /// Binds the table to a ring of its number of slots and moves the cursor to slot 0. While nothing runs.
  void bind(const slot_ring &r);

  const std::uint32_t num_slots;
  slot_ring ring;
  shared_word<std::uint32_t> cursor; ///< next slot to look at; written by the thread that reads the ring

  job_record &operator[](std::uint32_t slot) { return records_[slot]; }
  const job_record &operator[](std::uint32_t slot) const { return records_[slot]; }

  /// True if slot i holds a request that no dispatcher has taken. The job is read first: whoever answers clears rx
  /// before closing the job, so the other order could see an answered request's rx with its job already gone.
  bool untaken(std::uint32_t i) const {
    return records_[i].state.phase() == job_phase::open && ring.ready(i) != 0 && ring.collected(i);
  }
  /// The phase of slot i, after its job was closed if a device has answered it: a device cannot do that itself. By the
  /// thread that reads the ring.
  job_phase settled_phase(std::uint32_t i);

  /// For a producer that does not fill slots in ring order: if the cursor's slot is empty while a later one is ready,
  /// moves the cursor to that one. True if it moved. With a producer that keeps the order it never moves: the cursor's
  /// slot is then filled before any other. By the thread that reads the ring.
  bool resync_cursor();

private:
  std::unique_ptr<job_record[]> records_;
};

} // namespace cudaq::realtime::detail
