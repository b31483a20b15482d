// SPDX-License-Identifier: Apache-2.0
// The predecoder's output for the decode stage: the residual, sparse and dense, and the logical frame. GPU and CPU
// write the same bytes.
//
//   0                predecoder_header
//   frame_offset     uint64[frame_words]   observable k in bit k % 64 of word k / 64
//   dense_offset     uint64[dense_words]   residual: detector k in bit k % 64 of word k / 64
//   events_offset    uint32[num_events]    residual as ascending indices; room for all detectors
#pragma once

#include "cudaq/qec/decoding/decode_status.h"

#include <cstddef>
#include <cstdint>

namespace cudaq::qec::realtime {

struct predecoder_header {
  std::int32_t status;        ///< decode_status; if not ok, no other field is valid
  std::uint32_t num_events;   ///< events of the residual
  std::uint32_t input_events; ///< events of the shot
  std::uint32_t matched;      ///< matched edges, including boundary edges
};
static_assert(sizeof(predecoder_header) == 16);

struct predecoder_layout {
  std::uint32_t num_detectors = 0;
  std::uint32_t num_observables = 0;

  CUDAQ_QEC_HOST_DEVICE constexpr std::size_t frame_words() const { return (num_observables + std::size_t{63}) / 64; }
  CUDAQ_QEC_HOST_DEVICE constexpr std::size_t dense_words() const { return (num_detectors + std::size_t{63}) / 64; }
  CUDAQ_QEC_HOST_DEVICE constexpr std::size_t frame_offset() const { return sizeof(predecoder_header); }
  CUDAQ_QEC_HOST_DEVICE constexpr std::size_t dense_offset() const { return frame_offset() + frame_words() * 8; }
  CUDAQ_QEC_HOST_DEVICE constexpr std::size_t events_offset() const { return dense_offset() + dense_words() * 8; }
  CUDAQ_QEC_HOST_DEVICE constexpr std::size_t bytes() const {
    return events_offset() + std::size_t{num_detectors} * sizeof(std::uint32_t);
  }
  /// Bytes of a shot with one bit per detector.
  CUDAQ_QEC_HOST_DEVICE constexpr std::size_t input_bytes() const { return (num_detectors + std::size_t{7}) / 8; }
};

} // namespace cudaq::qec::realtime
