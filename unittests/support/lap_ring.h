// SPDX-License-Identifier: Apache-2.0
// A ring with laps in plain host memory, for tests of the protocol of rings whose requests lie in device memory.
#pragma once

#include "cudaq/realtime/detail/base/slot_memory.h"
#include "cudaq/realtime/detail/ring/slot_ring.h"

#include <cstdint>
#include <vector>

namespace cudaq::realtime::test {

/// rx flags and counts in one array, tx flags and laps in another. Without laps: an ordinary ring.
class lap_ring {
public:
  lap_ring(std::uint32_t num_slots, std::uint32_t slot_size, bool with_laps)
      : rx_flags_(2 * num_slots), tx_flags_(2 * num_slots), rx_(num_slots * lines(slot_size)),
        tx_(num_slots * lines(slot_size)) {
    view.rx_flags = rx_flags_.data();
    view.tx_flags = tx_flags_.data();
    view.rx_data = rx_.front().bytes;
    view.tx_data = tx_.front().bytes;
    view.rx_stride = view.tx_stride = lines(slot_size) * sizeof(line);
    view.num_slots = num_slots;
    view.slot_size = slot_size;
    view.lap_offset = with_laps ? num_slots : 0;
  }

  detail::slot_ring view;

private:
  struct alignas(detail::kLineBytes) line {
    std::uint8_t bytes[detail::kLineBytes] = {};
  };
  static std::size_t lines(std::uint32_t slot_size) { return (slot_size + sizeof(line) - 1) / sizeof(line); }

  std::vector<std::uint64_t> rx_flags_, tx_flags_;
  std::vector<line> rx_, tx_;
};

} // namespace cudaq::realtime::test
