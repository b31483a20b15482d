// SPDX-License-Identifier: Apache-2.0
// Makes a slot_ring, one side's view of a ring, from the structs of the C API that hold the ring's arrays.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#include "cudaq/realtime/detail/ring/slot_ring.h"

namespace cudaq::realtime::detail {

/// The device's view, from a cudaq_ringbuffer_t or from launch parameters. Arrays and strides are copied as they are.
template <class Struct>
CUDAQ_REALTIME_HOST_DEVICE inline slot_ring device_view(const Struct &s, std::uint32_t num_slots,
                                                        std::uint32_t slot_size) {
  slot_ring view;
  view.rx_flags = s.rx_flags, view.tx_flags = s.tx_flags;
  view.rx_data = s.rx_data, view.tx_data = s.tx_data;
  view.rx_stride = s.rx_stride_sz, view.tx_stride = s.tx_stride_sz;
  view.num_slots = num_slots, view.slot_size = slot_size;
  return view;
}

/// The host's view, from a cudaq_ringbuffer_t.
inline slot_ring host_view(const cudaq_ringbuffer_t &s, std::uint32_t num_slots, std::uint32_t slot_size) {
  slot_ring view;
  view.rx_flags = s.rx_flags_host, view.tx_flags = s.tx_flags_host;
  view.rx_data = s.rx_data_host, view.tx_data = s.tx_data_host;
  view.rx_stride = s.rx_stride_sz, view.tx_stride = s.tx_stride_sz;
  view.num_slots = num_slots, view.slot_size = slot_size;
  return view;
}

/// An in-place ring has one data area. If it is given once, as rx_data, the answers use the same area and stride.
CUDAQ_REALTIME_HOST_DEVICE inline slot_ring with_answers_in_place(slot_ring view) {
  if (view.tx_data == nullptr || view.tx_data == view.rx_data) {
    view.tx_data = view.rx_data;
    view.tx_stride = view.rx_stride;
  }
  return view;
}

} // namespace cudaq::realtime::detail
