// SPDX-License-Identifier: Apache-2.0
// Payloads that can be verified, for requests and answers under load. A payload holds the sequence number within its
// function, a checksum, and a filling. Host and device code, so that the same traffic checks both paths.
#pragma once

#include "cudaq/realtime/detail/base/host_device.h"

#include <cstdint>
#include <cstring>

namespace cudaq::realtime::test {

inline constexpr std::uint32_t kCheckedHeader = 8; ///< bytes before the filling
inline constexpr std::uint8_t kRequestSalt = 0x11;

/// The salt of a function's answers. An answer from the handler of another function does not verify.
CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint8_t result_salt(std::uint32_t function_id) {
  return static_cast<std::uint8_t>(0x5a + function_id);
}

/// Length of the answer to request `sequence`: from kCheckedHeader to `limit` bytes.
CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t checked_result_size(std::uint32_t sequence, std::uint32_t limit) {
  return kCheckedHeader + (sequence * 2654435761u >> 7) % (limit - kCheckedHeader + 1);
}

/// Byte i of the filling.
CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint8_t filling(std::uint32_t sequence, std::uint32_t i, std::uint8_t salt) {
  return static_cast<std::uint8_t>(sequence * 7 + i * 13 + salt);
}

CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t checksum_begin(std::uint32_t sequence, std::uint32_t size,
                                                                  std::uint8_t salt) {
  return 2166136261u ^ sequence ^ size ^ static_cast<std::uint32_t>(salt) << 24;
}
CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t checksum_step(std::uint32_t sum, std::uint8_t byte) {
  return (sum ^ byte) * 16777619u;
}

/// Writes a frame's first kCheckedHeader bytes. The checksum is computed from the known filling, without reading the
/// frame.
CUDAQ_REALTIME_HOST_DEVICE inline void write_checked_header(std::uint8_t *frame, std::uint32_t size,
                                                            std::uint32_t sequence, std::uint8_t salt) {
  std::uint32_t sum = checksum_begin(sequence, size, salt);
  for (std::uint32_t i = kCheckedHeader; i < size; ++i)
    sum = checksum_step(sum, filling(sequence, i, salt));
  std::memcpy(frame, &sequence, 4);
  std::memcpy(frame + 4, &sum, 4);
}

/// Writes `size` bytes, at least kCheckedHeader. Returns `size`.
CUDAQ_REALTIME_HOST_DEVICE inline std::uint32_t fill_frame(std::uint8_t *frame, std::uint32_t size,
                                                           std::uint32_t sequence, std::uint8_t salt) {
  for (std::uint32_t i = kCheckedHeader; i < size; ++i)
    frame[i] = filling(sequence, i, salt);
  write_checked_header(frame, size, sequence, salt);
  return size;
}

/// Returns true if the frame is intact. Sets `sequence` to its sequence number.
CUDAQ_REALTIME_HOST_DEVICE inline bool intact_frame(const void *data, std::uint32_t size, std::uint8_t salt,
                                                    std::uint32_t &sequence) {
  if (size < kCheckedHeader)
    return false;
  const auto *frame = static_cast<const std::uint8_t *>(data);
  std::uint32_t stated = 0;
  std::memcpy(&sequence, frame, 4);
  std::memcpy(&stated, frame + 4, 4);
  std::uint32_t sum = checksum_begin(sequence, size, salt);
  for (std::uint32_t i = kCheckedHeader; i < size; ++i)
    sum = checksum_step(sum, frame[i]);
  return sum == stated;
}

} // namespace cudaq::realtime::test
