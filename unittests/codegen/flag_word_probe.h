// SPDX-License-Identifier: Apache-2.0
// Each access to a ring's flags as a separate function, so that its machine code can be checked.
#pragma once

#include "cudaq/realtime/detail/ring/slot_ring.h"

namespace probe = cudaq::realtime::detail;

extern "C" CUDAQ_REALTIME_HOST_DEVICE std::uint64_t probe_load_acquire(const volatile std::uint64_t *word) {
  return probe::load_acquire(*word);
}

extern "C" CUDAQ_REALTIME_HOST_DEVICE void probe_store_release(volatile std::uint64_t *word, std::uint64_t value) {
  probe::store_release(*word, value);
}
