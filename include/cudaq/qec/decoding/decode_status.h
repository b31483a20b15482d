/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAQ_QEC_DECODING_DECODE_STATUS_H
#define CUDAQ_QEC_DECODING_DECODE_STATUS_H

#include <cstdint>

#if defined(__CUDACC__)
#define CUDAQ_QEC_HOST_DEVICE __host__ __device__
#else
#define CUDAQ_QEC_HOST_DEVICE
#endif

namespace cudaq::qec::realtime {

/// Result of one decode. The values never change: responses carry them. Also used in device code. The plug-in
/// interface has the same values (decoder_plugin.h).
enum class decode_status : std::int32_t {
  ok = 0,
  /// An event names a detector that the model does not have.
  bad_detector_index = 1,
  /// An event is listed twice (which could mean "flipped twice" or "sent twice").
  duplicate_detector_index = 2,
  /// No set of errors of the model causes these events, e.g. odd parity in a part of the
  /// code without a boundary.
  no_solution = 3,
  /// The caller's memory is shorter than the model needs.
  buffer_too_small = 4,
  /// Out of memory or a fault in the decoder. It has recovered, or will recover in the next call.
  internal_error = 5,
  /// The decoder does not have what was asked for: it gives no edges.
  not_supported = 6,
  /// The decoder found no solution within its limits, though there may be one (relay-bp).
  not_converged = 7,
  /// A stream ends in the middle of a repetition, its tail has another number of bits, or it has ended.
  stream_misaligned = 8,
  /// The deadline of the decode was reached first. There may be a solution, the best so far (decode_details).
  deadline = 9,
  /// The decode was cancelled by another thread.
  cancelled = 10,
  /// The queue of a stream is full. Nothing was taken: push the same bits again later.
  busy = 11,
  /// A probability of the shot is not from 0 to 1, or its error is listed twice or cannot be replaced.
  bad_probability = 12,
};

} // namespace cudaq::qec::realtime

#endif
