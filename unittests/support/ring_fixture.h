// SPDX-License-Identifier: Apache-2.0
// A slot_ring on its own memory with guard bytes between and around the slots, for tests below the C API.
#pragma once

#include "cudaq/realtime/detail/ring/slot_ring.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cudaq::realtime::test {

/// Slots of `slot_size` usable bytes at distances of `stride` bytes. All other bytes hold kGuard.
class guarded_slots {
public:
  static constexpr std::uint8_t kGuard = 0xA5;

  guarded_slots(std::uint32_t num_slots, std::uint32_t slot_size, std::size_t stride, bool in_place)
      : rx_flags_(num_slots), tx_flags_(num_slots), rx_(kMargin + num_slots * stride + kMargin, kGuard), tx_(rx_),
        in_place_(in_place) {
    view.rx_flags = rx_flags_.data();
    view.tx_flags = tx_flags_.data();
    view.rx_data = rx_.data() + kMargin;
    view.tx_data = in_place ? view.rx_data : tx_.data() + kMargin;
    view.rx_stride = view.tx_stride = stride;
    view.num_slots = num_slots;
    view.slot_size = slot_size;
  }

  bool guards_whole() const { return whole(rx_) && (in_place_ || whole(tx_)); }
  bool in_place() const { return in_place_; }

  detail::slot_ring view;

private:
  static constexpr std::size_t kMargin = 64;

  bool whole(const std::vector<std::uint8_t> &memory) const {
    for (std::size_t i = 0; i < memory.size(); ++i) {
      const bool inside = i >= kMargin && i < kMargin + view.num_slots * view.rx_stride &&
                          (i - kMargin) % view.rx_stride < view.slot_size;
      if (!inside && memory[i] != kGuard)
        return false;
    }
    return true;
  }

  std::vector<std::uint64_t> rx_flags_, tx_flags_;
  std::vector<std::uint8_t> rx_, tx_;
  bool in_place_;
};

} // namespace cudaq::realtime::test
