// SPDX-License-Identifier: Apache-2.0
// A ring for floors, which use no helper of the library: its addresses, as one side sees them.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"

#include <cstddef>
#include <cstdint>

namespace cudaq::realtime::tools {

struct raw_ring {
  std::uint64_t *rx_flags;
  std::uint64_t *tx_flags;
  std::uint8_t *rx_data;
  std::uint8_t *tx_data;
  std::size_t rx_stride;
  std::size_t tx_stride;
  std::uint32_t slots;

  static raw_ring for_host(const cudaq_ringbuffer_t &ring, std::uint32_t slots) {
    const bool in_place = ring.tx_data_host == nullptr;
    return {const_cast<std::uint64_t *>(ring.rx_flags_host),
            const_cast<std::uint64_t *>(ring.tx_flags_host),
            ring.rx_data_host,
            in_place ? ring.rx_data_host : ring.tx_data_host,
            ring.rx_stride_sz,
            in_place ? ring.rx_stride_sz : ring.tx_stride_sz,
            slots};
  }
  /// The ring has a tx side of its own.
  static raw_ring for_device(const cudaq_ringbuffer_t &ring, std::uint32_t slots) {
    return {const_cast<std::uint64_t *>(ring.rx_flags),
            const_cast<std::uint64_t *>(ring.tx_flags),
            ring.rx_data,
            ring.tx_data,
            ring.rx_stride_sz,
            ring.tx_stride_sz,
            slots};
  }
};

} // namespace cudaq::realtime::tools
