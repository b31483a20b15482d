// SPDX-License-Identifier: Apache-2.0
#include "lib/shared_ring/ring_router.h"

#include <chrono>
#include <cstring>
#include <thread>

namespace cudaq::realtime::detail {

// Sleeps after 100 attempts: the thread that holds the role may have a lower priority on the same core.
ring_router::control_role::control_role(ring_router &router) : router_(router) {
  for (int i = 0; !router_.role_.claim(0, 1); ++i)
    i < 100 ? std::this_thread::yield() : std::this_thread::sleep_for(std::chrono::microseconds(20));
}

ring_router::control_role::~control_role() { router_.role_.store(0); }

/// The member that receives requests for this function, or NULL: they are left in their slots. A function that no
/// member serves, but one has in another mode: if the ring has a default owner, that member answers MODE_NOT_SERVED.
/// Without a default owner the request is left, as one whose function no member has: programs give one table to the
/// dispatchers of host and device, and the other one may be outside (ring_protocol.md section 9).
ring_member *ring_router::receiver_of(std::uint32_t function_id) const {
  ring_member *fallback = nullptr, *knows = nullptr;
  for (const member_entry &s : members_) {
    if (s.member == nullptr)
      continue;
    if (s.member->owns(function_id))
      return s.leaving ? nullptr : s.member;
    if (s.member->index().contains(function_id) && !s.leaving)
      knows = s.member;
    if (s.member->is_default_owner() && !s.leaving)
      fallback = s.member;
  }
  return fallback != nullptr && knows != nullptr ? knows : fallback;
}

expected<> ring_router::attach(ring_member &member) {
  const control_role role(*this);
  expected<> result;
  member_entry *place = nullptr;
  for (member_entry &s : members_) {
    if (s.member == nullptr) {
      place = place ? place : &s;
      continue;
    }
    if (s.member->is_default_owner() && member.is_default_owner())
      result =
          make_reason(CUDAQ_ERR_INVALID_ARG,
                      "options->default_owner is set: another dispatcher of this ring is the default owner already");
    for (std::uint32_t r = 0; r < member.index().num_routes; ++r) {
      const std::uint32_t id = member.index().routes[r].function_id;
      if (member.owns(id) && s.member->owns(id))
        result = make_reason(CUDAQ_ERR_INVALID_ARG, "function_id 0x%08x: another dispatcher of this ring serves it%s",
                             id, s.leaving ? " and is still stopping" : "");
    }
  }
  if (result.ok() && place == nullptr)
    result = make_reason(CUDAQ_ERR_INVALID_ARG,
                         "config->shared_ring_mode: this ring has %u dispatchers already, the maximum", kMaxMembers);
  if (result.ok()) {
    *place = {&member, false};
    hand_out_parked();
  }
  return result;
}

void ring_router::park(std::uint32_t i, const request &r) {
  table_[i].req = r;
  table_[i].state.enter(job_phase::parked);
  ++table_.parked;
}

/// Reads the header of slot i, whose rx was `flag`. False if a dispatcher outside may have answered the slot
/// meanwhile, so that the producer may be filling it: then look again. The words are read with acquire: rx must be
/// read after them.
bool ring_router::read_untorn(std::uint32_t i, std::uint64_t flag, request &r) const {
  const auto *const slot = reinterpret_cast<const volatile std::uint64_t *>(table_.ring.rx_slot(i));
  const std::uint64_t words[] = {load_acquire(slot[0]), load_acquire(slot[1]), load_acquire(slot[2])};
  static_assert(sizeof(words) == sizeof(r));
  std::memcpy(&r, words, sizeof(r));
  return table_.ring.ready(i) == flag && same_header(r, read_header<request>(table_.ring.rx_slot(i)));
}

// The parked requests are in ring order, beginning at the cursor. A slot that a dispatcher outside has answered is left
// to the cursor: what it holds now is younger than the slots before it.
void ring_router::hand_out_parked() {
  std::uint32_t i = table_.cursor.peek();
  for (std::uint32_t left = table_.parked; left != 0; i = table_.ring.next(i)) {
    if (table_[i].state.phase() != job_phase::parked)
      continue;
    --left;
    if (table_.updated_phase(i) != job_phase::parked)
      continue;
    const std::uint64_t flag = table_.ring.ready(i);
    request r;
    if (flag == 0 || !read_untorn(i, flag, r) || !same_header(r, table_[i].req))
      continue;
    if (ring_member *const receiver = receiver_of(r.function_id)) {
      hand_over(i, r, flag, *receiver);
      --table_.parked;
    }
  }
}

void ring_router::begin_leaving(const ring_member &member) {
  const control_role role(*this);
  for (member_entry &s : members_)
    s.leaving = s.leaving || s.member == &member;
}

void ring_router::remove(const ring_member &member) {
  const control_role role(*this);
  for (member_entry &s : members_)
    if (s.member == &member)
      s = {};
  if (member.was_given_jobs())
    take_back_all(member);
  hand_out_parked();
}

/// Afterwards no job in phase given names this member, which may be destroyed.
void ring_router::take_back_all(const ring_member &from) {
  for (std::uint32_t i = 0; i < table_.ring.num_slots; ++i)
    if (table_.updated_phase(i) == job_phase::given && table_[i].owner.peek() == &from)
      take_back(i);
}

/// Takes a slot back from a device that has ended. If tx is set, the device has answered before a fault ended it: the
/// answer stays, and only rx is cleared.
void ring_router::take_back(std::uint32_t i) {
  if (table_.ring.collected(i)) {
    park(i, read_header<request>(table_.ring.rx_slot(i)));
    return;
  }
  table_.ring.release_rx(i);
  table_[i].state.finish();
}

void ring_router::hand_over(std::uint32_t i, const request &r, std::uint64_t flag, ring_member &to) {
  thread_counters &counts = to.shared_counters();
  if (!table_.ring.is_own_address(i, flag))
    counts.count(counts.unexpected_flag_values);
  const judgement what = judge_slot(table_.ring, i, flag, r, to.index(), to.rules());
  if (what.what == verdict::serve || what.what == verdict::answer) {
    to.accept(i, r, what);
    return;
  }
  counts.count_drop(what.what);
  table_[i].state.enter(job_phase::open);
  table_.ring.release_rx(i);
}

bool ring_router::route_one(std::uint32_t i, const ring_member &by, thread_counters &counts) {
  if (table_.updated_phase(i) != job_phase::open) // before rx, as in untaken
    return false;
  const std::uint64_t flag = table_.ring.ready(i);
  if (flag == 0)
    return false;
  if (!table_.ring.collected(i)) {
    if (busy_slot_ != i)
      counts.count(counts.tx_busy_waits);
    busy_slot_ = i;
    return false;
  }
  busy_slot_ = kNoSlot;
  request r;
  if (!read_untorn(i, flag, r))
    return false;
  if (r.magic != CUDAQ_RPC_MAGIC_REQUEST) { // no request frame, so no member's: this thread drops it
    if (!table_.ring.is_own_address(i, flag))
      counts.count(counts.unexpected_flag_values);
    counts.count_drop(judge_slot(table_.ring, i, flag, r, by.index(), by.rules()).what);
    table_.ring.release_rx(i);
  } else if (ring_member *receiver = receiver_of(r.function_id)) {
    hand_over(i, r, flag, *receiver);
  } else {
    park(i, r);
  }
  return true;
}

std::uint32_t ring_router::route(std::uint32_t budget, const ring_member &by, thread_counters &counts) {
  // The flag is read before the claim: on an idle ring the members must not compete for the role's cache line.
  if (table_.ring.ready(table_.cursor.peek()) == 0 || !role_.claim(0, 1))
    return 0;
  std::uint32_t routed = 0;
  for (std::uint32_t i = table_.cursor.peek(); routed < budget && route_one(i, by, counts); ++routed) {
    i = table_.ring.next(i);
    table_.cursor.set(i);
  }
  if (routed != 0)
    table_.restart_resync();
  role_.store(0);
  return routed;
}

bool ring_router::resync_shared_cursor(std::uint32_t slots) {
  if (!role_.claim(0, 1))
    return false;
  const bool moved = table_.resync_cursor(slots);
  role_.store(0);
  return moved;
}

} // namespace cudaq::realtime::detail
