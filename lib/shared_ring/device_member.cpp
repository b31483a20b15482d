// SPDX-License-Identifier: Apache-2.0
#include "lib/shared_ring/device_member.h"

#include <cstring>

namespace cudaq::realtime::detail {

void device_member::prepare(setup s) {
  setup_ = std::move(s);
  index_ = setup_.index.view();
  const std::uint32_t slots = setup_.router->jobs()->num_slots;
  std::memset(setup_.inbox_memory, 0, ring_inbox::bytes(slots));
  inbox_ = ring_inbox::in(setup_.inbox_memory, slots);
  given_.assign(slots, 0);
  sequence_ = setup_.first_sequence;
  position_ = 0;
  was_given_jobs_ = false;
  empty_turns_ = turns_ = 0;
  joined_.store(0);
  stop_.store(0);
}

// The ring is joined last, as by a host dispatcher: from then on requests are handed over, and the thread must be there
// to give them back.
expected<> device_member::join(const thread_placement &placement, cudaq_wait_policy_t policy,
                               std::uint64_t block_interval_ns, std::function<bool()> ended) {
  ended_ = std::move(ended);
  last_query_ = steady_clock::now();
  may_sleep_ = policy == CUDAQ_WAIT_BLOCK;
  expected<> result = thread_.start("cudaq-route", placement, [this, policy, block_interval_ns] {
    run_loop([this] { return turn(); }, [this] { return stop_seen(); }, idle_strategy(policy, block_interval_ns));
  });
  if (result.failed())
    return result;
  result = setup_.router->attach(*this);
  if (result.failed())
    leave();
  else
    joined_.store(1);
  return result;
}

std::uint32_t device_member::turn() {
  if (joined_.load() == 0)
    return 0;
  const std::uint32_t routed = setup_.router->route(kBatch, *this, counts_);
  if (routed != 0) {
    empty_turns_ = 0;
  } else if (++empty_turns_ % kResyncTurns == 0 || asleep()) {
    if (setup_.router->resync_shared_cursor(asleep() ? job_table::kResyncSlotsAsleep : job_table::kResyncSlots))
      counts_.count(counts_.cursor_jumps);
  }
  return routed;
}

// The caller's shutdown flag or a fault can end the kernel without a call of stop. The thread then leaves the ring, so
// that the kernel's requests do not hold up the ring until stop is called.
bool device_member::stop_seen() {
  if (stop_.load() != 0)
    return true;
  if (++turns_ % kQueryTurns != 0 && !asleep())
    return false;
  const steady_clock::time_point now = steady_clock::now();
  if (joined_.load() == 0 || now - last_query_ < kQueryInterval)
    return false;
  last_query_ = now;
  if (!ended_())
    return false;
  setup_.router->begin_leaving(*this);
  setup_.router->remove(*this);
  return true;
}

void device_member::begin_leaving() {
  if (setup_.router)
    setup_.router->begin_leaving(*this);
}

void device_member::leave() {
  stop_.store(1);
  thread_.join_until(steady_clock::time_point::max());
  if (setup_.router)
    setup_.router->remove(*this);
}

// The judgement is not passed on: the kernel has to read the header anyway, and judges the request again.
void device_member::accept(std::uint32_t slot, const request &, const judgement &) {
  job_record &record = (*setup_.router->jobs())[slot];
  record.owner.set(this);
  record.state.enter(job_phase::given);
  given_[slot] = sequence_;
  was_given_jobs_ = true;
  inbox_.put(position_, sequence_, slot);
  sequence_ = ring_inbox::after(sequence_, 1);
  position_ = setup_.router->jobs()->ring.next(position_);
}

} // namespace cudaq::realtime::detail
