// SPDX-License-Identifier: Apache-2.0
// The dispatcher side's private knowledge of a ring: the cursor, the job in each slot, and, on a shared ring, which
// dispatchers serve it and whose turn it is to read the next slot.
#pragma once

#include "lib/base/error_text.h"
#include "lib/ring/turn.h"
#include "lib/shared_ring/thread_counters.h"

#include <array>
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
/// answered slot may be refilled, so the completer leaves the answer in the record, and it is published when the handler
/// has returned: by the thread that ran it, or, if that was faster than the writing down, by the completer.
enum class slot_phase : std::uint32_t {
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

/// Phase and generation in one word, so that a completion claims exactly the job that it names.
class slot_state {
public:
  struct snapshot {
    std::uint64_t generation;
    slot_phase phase;
  };
  snapshot look() const {
    const std::uint64_t word = word_.load();
    return {word >> kPhaseBits, static_cast<slot_phase>(word & kPhaseMask)};
  }
  slot_phase phase() const { return look().phase; }
  std::uint64_t generation() const { return look().generation; }
  void start_at(std::uint64_t generation) { set(generation, slot_phase::open); }
  /// A step that only one thread may take: the one that reads the ring (to queued, parked, and back to open for a request
  /// that is dropped, before rx is cleared), or the one that serves the job (to running).
  void enter(slot_phase phase) { set(generation(), phase); }
  /// A step that several threads may want; false: the job is not this generation's, or not in `from`.
  bool claim(std::uint64_t generation, slot_phase from, slot_phase to) {
    return word_.claim(pack(generation, from), pack(generation, to));
  }
  /// The job is answered. Only after the rx flag was cleared: an open slot with a set rx flag is a new request.
  void finish() { set(generation() + 1, slot_phase::open); }

private:
  static constexpr std::uint64_t kPhaseBits = 4, kPhaseMask = 15;
  static std::uint64_t pack(std::uint64_t generation, slot_phase phase) {
    return generation << kPhaseBits | static_cast<std::uint64_t>(phase);
  }
  void set(std::uint64_t generation, slot_phase phase) { word_.store(pack(generation, phase)); }
  shared_word<std::uint64_t> word_;
};

class ring_member;

/// The job record of a slot. Written by the thread that reads the ring before it hands the job on.
struct alignas(64) slot_record {
  slot_state state;
  request req;
  judgement what; ///< serve, or answer with a status
  shared_word<const ring_member *> owner;
  outcome early;                ///< the answer that came while the handler ran
  bool marked = false;          ///< IN_FLIGHT stands in the tx flag and rx is (being) cleared
  std::uint32_t cuda_error = 0; ///< why a graph's launch or run failed
  /// A graph's job that nobody but the library may complete. Written before the job can be known.
  shared_word<bool> library_answers;
};

/// One dispatcher of a shared ring, as the thread that reads the ring sees it. Called under the router role only.
class ring_member {
public:
  virtual ~ring_member() = default;
  virtual const function_index_view &index() const = 0;
  virtual const judge_rules &rules() const = 0;
  /// The function is in its table, in a mode that it serves.
  bool owns(std::uint32_t function_id) const { return index().serves(function_id, rules().served_modes); }
  virtual bool is_default_owner() const = 0;
  /// Takes over a request that was judged by this member's rules.
  virtual void accept(std::uint32_t slot, const request &r, const judgement &what) = 0;
  /// It has answered the request that it was last given in this slot, and cleared rx. Asked in phase given.
  virtual bool has_answered(std::uint32_t) const { return false; }
  /// Counters that any thread may add to.
  virtual lane &shared_lane() = 0;
};

class ring_ledger {
public:
  static constexpr std::uint32_t kMaxMembers = 16;

  /// Generations count up from `first_generation`, so that a job of one ledger is never taken for a job of another.
  ring_ledger(std::uint32_t slots_of_ring, std::uint64_t first_generation);
  /// Binds the ledger to a ring of its number of slots and moves the cursor to slot 0. While nothing runs.
  void bind(const slot_ring &r);

  const std::uint32_t num_slots;
  slot_ring ring;
  std::unique_ptr<slot_record[]> slots;
  shared_word<std::uint32_t> cursor; ///< next slot to look at; written by the thread that reads the ring

  /// True if slot i holds a request that nobody has taken. The job is read first: whoever answers clears rx before he
  /// closes the job, so the other order could see an answered request's rx with its job already gone.
  bool untaken(std::uint32_t i) const {
    return slots[i].state.phase() == slot_phase::open && ring.ready(i) != 0 && ring.collected(i);
  }

  /// For a producer that does not fill slots in ring order: if the cursor's slot is empty while a later one is ready,
  /// moves the cursor to that one. True if it moved. With a producer that keeps the order it never moves: the cursor's
  /// slot is then filled before any other. By the thread that reads the ring.
  bool resync_cursor();

  // --- shared ring: several dispatchers, each with its own thread ---

  /// Joins. Refused: a function id that another member serves, a second default owner, too many members. Requests that
  /// were left in place and belong to the new member are handed to it, oldest first.
  finding attach(ring_member &member);
  /// Nothing more is accepted for the member. Its function ids stay its own, and requests for them are left in place,
  /// until it is removed: what was accepted before must be served before any of them.
  void begin_leaving(const ring_member &member);
  /// The member is gone. What it was given and has not answered is left in place again; what was left in place for it
  /// goes to the default owner, if there is one.
  void remove(const ring_member &member);
  /// Takes the router role if it is free, and hands ready slots to their owners in ring order, at most `budget`. `by`
  /// disposes of what is no request frame; `counts` is the calling thread's.
  std::uint32_t route(std::uint32_t budget, const ring_member &by, lane &counts);
  /// resync_cursor under the router role; false also if the role is taken.
  bool resync_shared_cursor();

private:
  /// Holds the router role during a control call, whatever happens.
  class control_role {
  public:
    explicit control_role(ring_ledger &ledger);
    ~control_role();
    control_role(const control_role &) = delete;
    control_role &operator=(const control_role &) = delete;

  private:
    ring_ledger &ledger_;
  };
  struct seat {
    ring_member *member = nullptr;
    bool leaving = false;
  };
  slot_phase settled_phase(std::uint32_t i);
  bool route_one(std::uint32_t i, const ring_member &by, lane &counts);
  ring_member *receiver_of(std::uint32_t function_id) const;
  void take_back(std::uint32_t i);
  void hand_over(std::uint32_t i, const request &r, std::uint64_t flag, ring_member &to);
  void hand_out_parked();

  // The router role: exclusive right to read untaken slots, move the cursor and change the members. Others that find
  // it taken go on with their own work; nobody waits for it on the hot path.
  shared_word<std::uint32_t> router_;
  std::array<seat, kMaxMembers> seats_{};
  static constexpr std::uint32_t kNoSlot = 0xFFFFFFFFu;
  std::uint32_t busy_slot_ = kNoSlot; ///< slot at the cursor that waits for its consumer, to count it once
};

} // namespace cudaq::realtime::detail
