// SPDX-License-Identifier: Apache-2.0
#include "lib/api/back_end.h"

namespace cudaq::realtime::detail {

slot_ring view_of(const cudaq_ringbuffer_t &r, const cudaq_dispatcher_config_t &c, ring_side side) {
  const bool host = side == ring_side::host;
  slot_ring view;
  view.rx_flags = host ? r.rx_flags_host : r.rx_flags;
  view.tx_flags = host ? r.tx_flags_host : r.tx_flags;
  view.rx_data = host ? r.rx_data_host : r.rx_data;
  view.tx_data = host ? r.tx_data_host : r.tx_data;
  view.rx_stride = r.rx_stride_sz;
  view.tx_stride = r.tx_stride_sz;
  if (is_in_place(r, side)) {
    view.tx_data = view.rx_data;
    view.tx_stride = view.rx_stride;
  }
  view.rx_alias = reinterpret_cast<std::uint64_t>(host ? r.rx_data : r.rx_data_host);
  view.num_slots = c.num_slots;
  view.slot_size = static_cast<std::uint32_t>(usable_slot_bytes(r, c, side));
  return view;
}

} // namespace cudaq::realtime::detail
