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
  restart_resync();
  for (std::uint32_t i = 0; i < ring.num_slots; ++i)
    records_[i].state.enter(job_phase::open);
}

// docs/ring_protocol.md section 6, "looking over the ring".
bool job_table::resync_cursor(std::uint32_t slots) {
  const std::uint32_t here = cursor.peek();
  const auto passed_over = [this](std::uint32_t i) { // the job is read before rx
    const job_phase phase = updated_phase(i);
    return phase == job_phase::parked || (phase == job_phase::open && ring.ready(i) == 0);
  };
  const auto at = [&](std::uint32_t distance) {
    const std::uint32_t left = ring.num_slots - here;
    return distance < left ? here + distance : distance - left;
  };
  if (resync_.cursor != here) {
    restart_resync();
    resync_.cursor = here;
  }
  if (!passed_over(here))
    return false;
  for (; resync_.ready == 0; --slots) {
    if (slots == 0)
      return false;
    const bool all_empty = resync_.empty >= ring.num_slots;
    if (!all_empty && passed_over(at(resync_.empty))) {
      ++resync_.empty;
    } else if (!all_empty && untaken(at(resync_.empty))) {
      resync_.ready = resync_.empty;
    } else { // or in flight: begin again, because a request may come in an earlier slot before that one is answered
      restart_resync();
      return false;
    }
  }
  // The ready slot was seen with acquire, so everything signalled before it is visible now: look again at the passed
  // slots.
  for (; resync_.still_empty != resync_.ready && passed_over(at(resync_.still_empty)); ++resync_.still_empty, --slots)
    if (slots == 0)
      return false;
  const std::uint32_t moves_by = resync_.still_empty;
  cursor.set(at(moves_by));
  restart_resync();
  return moves_by != 0;
}

// A dispatcher outside has answered if rx is 0, or if the producer has filled the slot again: then the header differs.
// If the requester uses the same numbers once more, it cannot be detected; the request then has the same function,
// which no member serves. In place the header differs while the answer is being written, so there only rx counts.
bool job_table::parked_is_replaced(std::uint32_t i) const {
  return ring.ready(i) == 0 ||
         (!ring.in_place() && !same_header(read_header<request>(ring.rx_slot(i)), records_[i].req));
}

job_phase job_table::updated_phase(std::uint32_t i) {
  job_state &state = records_[i].state;
  if (state.phase() == job_phase::given && records_[i].owner.peek()->has_answered(i))
    state.finish();
  if (state.phase() == job_phase::parked && parked_is_replaced(i)) {
    state.enter(job_phase::open);
    --parked;
  }
  return state.phase();
}

} // namespace cudaq::realtime::detail
