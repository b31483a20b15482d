// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace cudaq::qec::realtime {

/// The moments of a request (stage_times.h), in ticks of the server's clock. Each is at or after the one before it, up
/// to the difference of two cores' counters.
struct request_moments {
  std::uint64_t arrived = 0, accepted = 0, queued = 0, taken = 0, decoded = 0;
  std::uint64_t record = 0; ///< the mark of the request in the flight recorder; 0: it has none
};

} // namespace cudaq::qec::realtime
