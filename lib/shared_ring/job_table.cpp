// SPDX-License-Identifier: Apache-2.0
#include "lib/shared_ring/job_table.h"

namespace cudaq::realtime::detail {

job_table::job_table(std::uint32_t slots_of_ring, std::uint64_t first_generation)
    : num_slots(slots_of_ring), records_(std::make_unique<job_record[]>(slots_of_ring)) {
  ring.num_slots = num_slots;
  for (std::uint32_t i = 0; i < num_slots; ++i)
    records_[i].state.start_at(first_generation);
}

void job_table::bind(const slot_ring &r) {
  ring = r;
  cursor.set(0);
  for (std::uint32_t i = 0; i < ring.num_slots; ++i)
    records_[i].state.enter(job_phase::open);
}

// docs/ring_protocol.md section 6, "looking over the ring".
bool job_table::resync_cursor() {
  const std::uint32_t here = cursor.peek();
  const auto passed_over = [this](std::uint32_t i) { // the job is read before rx
    const job_phase phase = settled_phase(i);
    return phase == job_phase::parked || (phase == job_phase::open && ring.ready(i) == 0);
  };
  if (!passed_over(here))
    return false;
  std::uint32_t found = ring.next(here);
  while (found != here && passed_over(found))
    found = ring.next(found);
  if (found == here || !untaken(found))
    return false;
  // `found` was seen with acquire, so everything signalled before it is visible now: look again at the passed slots.
  std::uint32_t first = here;
  while (first != found && passed_over(first))
    first = ring.next(first);
  cursor.set(first);
  return first != here;
}

job_phase job_table::settled_phase(std::uint32_t i) {
  job_state &state = records_[i].state;
  if (state.phase() == job_phase::given && records_[i].owner.peek()->has_answered(i))
    state.finish();
  return state.phase();
}

} // namespace cudaq::realtime::detail
