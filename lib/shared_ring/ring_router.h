// SPDX-License-Identifier: Apache-2.0
// A ring that several dispatchers (members) serve, each with its own thread: the list of members, and the router role,
// which decides which member reads the next slot.
//
// The router has no thread. route() and resync_shared_cursor() run on the members' threads: the dispatcher thread of a
// host_dispatcher, and the "cudaq-route" thread of a device_member. attach, begin_leaving and remove also run on the
// caller's thread that starts or stops a dispatcher.
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

  /// Adds a member. Refused: a function id that another member serves, a second default owner, more than kMaxMembers.
  /// Parked requests that belong to the new member are handed to it, oldest first.
  expected<> attach(ring_member &member);
  /// No more requests are accepted for the member. Until it is removed, it keeps its function ids, and requests for
  /// them are left in their slots: the requests accepted before must be served first.
  void begin_leaving(const ring_member &member);
  /// Removes a member. Requests that were given to it (phase given) and are not answered are parked again. Then all
  /// parked requests are handed out: to a member that owns them, or to the default owner, if there is one. Looks at the
  /// slots of the ring only if the member was given requests, or requests are parked.
  void remove(const ring_member &member);
  /// Takes the router role if it is free, and hands ready slots to their owners in ring order, at most `budget`.
  /// Returns the number of slots. Frames that are no requests are dropped by the rules of `by`. `counts` is the calling
  /// thread's.
  std::uint32_t route(std::uint32_t budget, const ring_member &by, thread_counters &counts);
  /// job_table::resync_cursor under the router role. False also if another thread has the role.
  bool resync_shared_cursor(std::uint32_t slots);

private:
  /// Holds the router role during a control call. Waits for it; the destructor releases it.
  class control_role {
  public:
    explicit control_role(ring_router &router);
    ~control_role();
    control_role(const control_role &) = delete;
    control_role &operator=(const control_role &) = delete;

  private:
    ring_router &router_;
  };
  struct member_entry {
    ring_member *member = nullptr;
    bool leaving = false;
  };
  bool route_one(std::uint32_t i, const ring_member &by, thread_counters &counts);
  ring_member *receiver_of(std::uint32_t function_id) const;
  bool read_untorn(std::uint32_t i, std::uint64_t flag, request &r) const;
  void park(std::uint32_t i, const request &r);
  void take_back_all(const ring_member &from);
  void take_back(std::uint32_t i);
  void hand_over(std::uint32_t i, const request &r, std::uint64_t flag, ring_member &to);
  void hand_out_parked();

  const std::shared_ptr<job_table> jobs_;
  job_table &table_; ///< *jobs_
  // The router role, 1 while a thread has it: the exclusive right to read untaken slots, to move the cursor and to
  // change the members. A thread that finds it taken continues with its own work. No thread waits for it on the hot
  // path.
  shared_word<std::uint32_t> role_;
  std::array<member_entry, kMaxMembers> members_{};
  static constexpr std::uint32_t kNoSlot = 0xFFFFFFFFu;
  std::uint32_t busy_slot_ = kNoSlot; ///< slot at the cursor whose last answer is not collected: it is counted once
};

} // namespace cudaq::realtime::detail
