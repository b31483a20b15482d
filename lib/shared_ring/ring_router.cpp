// SPDX-License-Identifier: Apache-2.0
#include "lib/shared_ring/job_table.h"

#include <chrono>
#include <thread>

namespace cudaq::realtime::detail {

ring_ledger::ring_ledger(std::uint32_t slots_of_ring, std::uint64_t first_generation)
    : num_slots(slots_of_ring), slots(std::make_unique<slot_record[]>(slots_of_ring)) {
  ring.num_slots = num_slots;
  for (std::uint32_t i = 0; i < num_slots; ++i)
    slots[i].state.start_at(first_generation);
}

void ring_ledger::bind(const slot_ring &r) {
  ring = r;
  cursor.set(0);
  for (std::uint32_t i = 0; i < ring.num_slots; ++i)
    slots[i].state.enter(slot_phase::open);
}

// docs/ring_protocol.md section 6, "looking over the ring".
bool ring_ledger::resync_cursor() {
  const std::uint32_t here = cursor.peek();
  const auto passed_over = [this](std::uint32_t i) { // in this order: the job, then rx
    const slot_phase phase = settled_phase(i);
    return phase == slot_phase::parked || (phase == slot_phase::open && ring.ready(i) == 0);
  };
  if (!passed_over(here))
    return false;
  std::uint32_t found = ring.next(here);
  while (found != here && passed_over(found))
    found = ring.next(found);
  if (found == here || !untaken(found))
    return false;
  // Having seen `found` we see everything that was signalled before it: look again at what was passed over.
  std::uint32_t first = here;
  while (first != found && passed_over(first))
    first = ring.next(first);
  cursor.set(first);
  return first != here;
}

/// The phase of slot i, its job closed if a device has answered it: a device cannot do that itself.
slot_phase ring_ledger::settled_phase(std::uint32_t i) {
  slot_state &state = slots[i].state;
  if (state.phase() == slot_phase::given && slots[i].owner.peek()->has_answered(i))
    state.finish();
  return state.phase();
}

// Sleeps, since the holder may be a thread of lower priority on the same core.
ring_ledger::control_role::control_role(ring_ledger &ledger) : ledger_(ledger) {
  for (int i = 0; !ledger_.router_.claim(0, 1); ++i)
    i < 100 ? std::this_thread::yield() : std::this_thread::sleep_for(std::chrono::microseconds(20));
}

ring_ledger::control_role::~control_role() { ledger_.router_.store(0); }

/// The member that a request for this function is handed to. Null: it is left in place. Whoever only knows the function,
/// in another mode, answers so if nobody serves it.
ring_member *ring_ledger::receiver_of(std::uint32_t function_id) const {
  ring_member *fallback = nullptr, *knows = nullptr;
  for (const seat &s : seats_) {
    if (s.member == nullptr)
      continue;
    if (s.member->owns(function_id))
      return s.leaving ? nullptr : s.member;
    if (s.member->index().contains(function_id) && !s.leaving)
      knows = s.member;
    if (s.member->is_default_owner() && !s.leaving)
      fallback = s.member;
  }
  return knows != nullptr ? knows : fallback;
}

finding ring_ledger::attach(ring_member &member) {
  const control_role role(*this);
  finding refused;
  seat *place = nullptr;
  for (seat &s : seats_) {
    if (s.member == nullptr) {
      place = place ? place : &s;
      continue;
    }
    if (s.member->is_default_owner() && member.is_default_owner())
      refused = make_finding(CUDAQ_ERR_INVALID_ARG, "default_owner: another dispatcher of this ring is it already");
    for (std::uint32_t r = 0; r < member.index().num_routes; ++r) {
      const std::uint32_t id = member.index().routes[r].function_id;
      if (member.owns(id) && s.member->owns(id))
        refused = make_finding(CUDAQ_ERR_INVALID_ARG, "function_id 0x%08x: another dispatcher of this ring serves it%s",
                               id, s.leaving ? ", and is still stopping" : "");
    }
  }
  if (!refused && place == nullptr)
    refused =
        make_finding(CUDAQ_ERR_INVALID_ARG, "shared_ring_mode: this ring has %u dispatchers already", kMaxMembers);
  if (!refused) {
    *place = {&member, false};
    hand_out_parked();
  }
  return refused;
}

// What was left in place stands in ring order from the cursor on.
void ring_ledger::hand_out_parked() {
  std::uint32_t i = cursor.peek();
  for (std::uint32_t n = 0; n < ring.num_slots; ++n, i = ring.next(i)) {
    if (slots[i].state.phase() != slot_phase::parked)
      continue;
    const std::uint64_t flag = ring.ready(i);
    if (flag == 0) { // somebody else has answered it meanwhile: a dispatcher that had the ring for itself
      slots[i].state.enter(slot_phase::open);
      continue;
    }
    const request r = read_header<request>(ring.rx_slot(i));
    if (ring_member *receiver = receiver_of(r.function_id))
      hand_over(i, r, flag, *receiver);
  }
}

void ring_ledger::begin_leaving(const ring_member &member) {
  const control_role role(*this);
  for (seat &s : seats_)
    s.leaving = s.leaving || s.member == &member;
}

void ring_ledger::remove(const ring_member &member) {
  const control_role role(*this);
  for (seat &s : seats_)
    if (s.member == &member)
      s = {};
  for (std::uint32_t i = 0; i < ring.num_slots; ++i)
    if (settled_phase(i) == slot_phase::given && slots[i].owner.peek() == &member)
      take_back(i);
  hand_out_parked();
}

/// A device that has ended does not serve this slot any more. If a fault ended it behind the answer, that one stands.
void ring_ledger::take_back(std::uint32_t i) {
  if (ring.collected(i)) {
    slots[i].state.enter(slot_phase::parked);
    return;
  }
  ring.release_rx(i);
  slots[i].state.finish();
}

void ring_ledger::hand_over(std::uint32_t i, const request &r, std::uint64_t flag, ring_member &to) {
  lane &counts = to.shared_lane();
  if (!ring.is_own_address(i, flag))
    counts.count(counts.unexpected_flag_values);
  const judgement what = judge_slot(ring, i, flag, r, to.index(), to.rules());
  if (what.what == verdict::serve || what.what == verdict::answer) {
    to.accept(i, r, what);
    return;
  }
  counts.count_drop(what.what);
  slots[i].state.enter(slot_phase::open);
  ring.release_rx(i);
}

bool ring_ledger::route_one(std::uint32_t i, const ring_member &by, lane &counts) {
  if (settled_phase(i) != slot_phase::open) // before rx, as in untaken
    return false;
  const std::uint64_t flag = ring.ready(i);
  if (flag == 0)
    return false;
  if (!ring.collected(i)) {
    if (busy_slot_ != i)
      counts.count(counts.tx_busy_waits);
    busy_slot_ = i;
    return false;
  }
  busy_slot_ = kNoSlot;
  const request r = read_header<request>(ring.rx_slot(i));
  if (r.magic != CUDAQ_RPC_MAGIC_REQUEST) { // belongs to nobody for certain, so whoever sees it disposes of it
    if (!ring.is_own_address(i, flag))
      counts.count(counts.unexpected_flag_values);
    counts.count_drop(judge_slot(ring, i, flag, r, by.index(), by.rules()).what);
    ring.release_rx(i);
  } else if (ring_member *receiver = receiver_of(r.function_id)) {
    hand_over(i, r, flag, *receiver);
  } else {
    slots[i].state.enter(slot_phase::parked);
  }
  return true;
}

std::uint32_t ring_ledger::route(std::uint32_t budget, const ring_member &by, lane &counts) {
  // Looked at before the claim: on an idle ring the members shall not fight for the role's cache line.
  if (ring.ready(cursor.peek()) == 0 || !router_.claim(0, 1))
    return 0;
  std::uint32_t routed = 0;
  for (std::uint32_t i = cursor.peek(); routed < budget && route_one(i, by, counts); ++routed) {
    i = ring.next(i);
    cursor.set(i);
  }
  router_.store(0);
  return routed;
}

bool ring_ledger::resync_shared_cursor() {
  if (!router_.claim(0, 1))
    return false;
  const bool moved = resync_cursor();
  router_.store(0);
  return moved;
}

} // namespace cudaq::realtime::detail
