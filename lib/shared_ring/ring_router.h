// SPDX-License-Identifier: Apache-2.0
// A ring that several dispatchers serve, each with a thread of its own: which of them there are, and whose turn it is
// to read the next slot.
#pragma once

#include "lib/base/error_text.h"
#include "lib/shared_ring/job_table.h"

#include <array>

namespace cudaq::realtime::detail {

class ring_router {
public:
  static constexpr std::uint32_t kMaxMembers = 16;

  explicit ring_router(std::shared_ptr<job_table> jobs) : jobs_(std::move(jobs)), table_(*jobs_) {}

  const std::shared_ptr<job_table> &jobs() const { return jobs_; }

  /// Joins. Refused: a function id that another member serves, a second default owner, too many members. Requests that
  /// were left in place and belong to the new member are handed to it, oldest first.
  status_or_reason attach(ring_member &member);
  /// Nothing more is accepted for the member. Its function ids stay its own, and requests for them are left in place,
  /// until it is removed: what was accepted before must be served before any of them.
  void begin_leaving(const ring_member &member);
  /// The member is gone. What it was given and has not answered is left in place again; what was left in place for it
  /// goes to the default owner, if there is one.
  void remove(const ring_member &member);
  /// Takes the router role if it is free, and hands ready slots to their owners in ring order, at most `budget`. `by`
  /// disposes of what is no request frame; `counts` is the calling thread's.
  std::uint32_t route(std::uint32_t budget, const ring_member &by, thread_counters &counts);
  /// job_table::resync_cursor under the router role; false also if the role is taken.
  bool resync_shared_cursor();

private:
  /// Holds the router role during a control call, whatever happens.
  class control_role {
  public:
    explicit control_role(ring_router &router);
    ~control_role();
    control_role(const control_role &) = delete;
    control_role &operator=(const control_role &) = delete;

  private:
    ring_router &router_;
  };
  struct seat {
    ring_member *member = nullptr;
    bool leaving = false;
  };
  bool route_one(std::uint32_t i, const ring_member &by, thread_counters &counts);
  ring_member *receiver_of(std::uint32_t function_id) const;
  void take_back(std::uint32_t i);
  void hand_over(std::uint32_t i, const request &r, std::uint64_t flag, ring_member &to);
  void hand_out_parked();

  const std::shared_ptr<job_table> jobs_;
  job_table &table_; ///< *jobs_
  // The router role: exclusive right to read untaken slots, move the cursor and change the members. Others that find
  // it taken go on with their own work; no thread waits for it on the hot path.
  shared_word<std::uint32_t> role_;
  std::array<seat, kMaxMembers> seats_{};
  static constexpr std::uint32_t kNoSlot = 0xFFFFFFFFu;
  std::uint32_t busy_slot_ = kNoSlot; ///< slot at the cursor that waits for its consumer, to count it once
};

} // namespace cudaq::realtime::detail
