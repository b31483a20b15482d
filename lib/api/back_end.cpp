// SPDX-License-Identifier: Apache-2.0
#include "lib/api/back_end.h"

#include "cudaq/realtime/detail/ring/ring_record.h"
#include "cudaq/realtime/detail/ring/ring_view.h"

namespace cudaq::realtime::detail {

slot_ring view_of(const cudaq_ringbuffer_t &r, const cudaq_dispatcher_config_t &c, ring_side side) {
  const bool host = side == ring_side::host;
  const auto slot_size = static_cast<std::uint32_t>(usable_slot_bytes(r, c, side));
  slot_ring view =
      with_answers_in_place(host ? host_view(r, c.num_slots, slot_size) : device_view(r, c.num_slots, slot_size));
  view.rx_alias = reinterpret_cast<std::uint64_t>(host ? r.rx_data : r.rx_data_host);
  view.lap_offset = host ? 0 : lap_offset_of(r.tx_flags_host, c.num_slots);
  return view;
}

memory_claim claim_of(const wiring &w, const cudaq_dispatcher_config_t &c, std::uint32_t known_slots) {
  const bool brings_its_ring = c.dispatch_path == CUDAQ_DISPATCH_PATH_DEVICE && c.kernel_type == CUDAQ_KERNEL_UNIFIED;
  const cudaq_ringbuffer_t *ring = w.ring && !brings_its_ring ? &*w.ring : nullptr;
  const volatile void *shared_ring = ring != nullptr && c.shared_ring_mode != 0 ? identity_of(*ring) : nullptr;
  return {ring, known_slots, shared_ring, w.shutdown_flag, w.stats};
}

} // namespace cudaq::realtime::detail
