// SPDX-License-Identifier: Apache-2.0
// The size of a slot if none is given. The server and an emulated control system choose the same for the same model.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#include "lib/qec/server/session/wire_requests.h"

#include <algorithm>
#include <cstdint>

namespace cudaq::qec::realtime {

inline constexpr std::uint32_t kUsualSlotSize = 256; ///< of the providers

/// Bytes of an enqueue request of so many bits, with its header.
inline std::uint64_t enqueue_bytes(std::uint64_t bits) {
  return CUDAQ_RPC_HEADER_SIZE + kEnqueueHeadBytes + (bits + 7) / 8;
}

/// 256 bytes, or more if a whole shot of `bits` needs more in one enqueue request: a multiple of 128, which RoCE needs.
/// 0: no slot is so large; the shot must come in several requests.
inline std::uint32_t usual_slot_size(std::uint64_t bits) {
  constexpr std::uint64_t unit = 128, max_size = 65408;
  const std::uint64_t size = std::max<std::uint64_t>(kUsualSlotSize, (enqueue_bytes(bits) + unit - 1) / unit * unit);
  return size > max_size ? 0 : static_cast<std::uint32_t>(size);
}

/// The bits of an enqueue request that is as long as the request of a whole shot of `bits` with its soft values and
/// flags, in the widest kind for which there is a slot; if there is none, in the widest kind.
inline std::uint64_t bits_with_readout(std::uint64_t bits, const readout_facts &readout) {
  if (!readout.any())
    return bits;
  const auto with = [&](std::uint64_t bytes) {
    return bits + 8 * (kEnqueueReadoutHeadBytes - kEnqueueHeadBytes + bytes);
  };
  for (const soft_kind kind : {soft_kind::f32, soft_kind::u8, soft_kind::u4})
    if (const std::uint64_t bytes = readout.soft_bytes(kind) + readout.leakage_bytes();
        readout.takes(kind) && usual_slot_size(with(bytes)) != 0)
      return with(bytes);
  return with(readout.longest_bytes());
}

} // namespace cudaq::qec::realtime
