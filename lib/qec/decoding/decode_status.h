// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define CUDAQ_QEC_HOST_DEVICE __host__ __device__
#else
#define CUDAQ_QEC_HOST_DEVICE
#endif

namespace cudaq::qec::realtime {

/// Outcome of one decode. Values are stable: they travel in responses. Plain enough for
/// device code.
enum class decode_status : std::int32_t {
  ok = 0,
  /// An event names a detector that the model does not have.
  bad_detector_index = 1,
  /// An event is listed twice (it could mean "twice flipped" or "sent twice").
  duplicate_detector_index = 2,
  /// No set of errors of the model causes these events, e.g. odd parity in a part of the
  /// code without a boundary.
  no_solution = 3,
  /// The caller's memory is shorter than the model needs.
  buffer_too_small = 4,
  /// Out of memory or a fault in the decoder; it has recovered or will on the next call.
  internal_error = 5,
};

} // namespace cudaq::qec::realtime
