// SPDX-License-Identifier: Apache-2.0
// The stores to memory with a write-combining mapping, so that their machine code can be checked: those of a producer's
// handle on a ring with laps as functions, and the stateless helpers as they are.
#include "lib/api/rings/slot_helpers.cpp"
#include "lib/ring/producer_core.h"

namespace probe = cudaq::realtime::detail;

extern "C" __attribute__((flatten)) void probe_commit(probe::producer_core &producer, std::uint32_t slot) {
  if (!producer.with_laps())
    __builtin_unreachable(); // without laps there is no fence
  producer.commit(slot, 1);
}

extern "C" void probe_store_line(std::uint8_t *to, const std::uint8_t *from) { probe::store_line(to, from); }
