/* SPDX-License-Identifier: Apache-2.0 */
// What the decode stage puts behind the response header.
#ifndef CUDAQ_QEC_REALTIME_DECODE_RESPONSE_H
#define CUDAQ_QEC_REALTIME_DECODE_RESPONSE_H

#include <cstddef>
#include <cstdint>

namespace cudaq::qec::realtime {

/// The first 8 bytes of a decode result, little-endian. Behind them: ceil(observables / 64) words of 8 bytes, observable k
/// in bit k % 64 of word k / 64, unused bits 0: the logical frame of the predecoder XOR the matching of its residual. That
/// is the answer; the counts are statistics. Nothing stands behind the counts when `converged` is 0.
struct __attribute__((packed)) DecodeResponse {
  std::int32_t total_corrections; ///< observables that the answer flips
  std::int32_t converged;         ///< 1: there is an answer; 0: none, and the status of the response says why
};
static_assert(sizeof(DecodeResponse) == 8, "travels on the wire");

/// Bytes of a decode result for so many observables.
constexpr std::size_t decode_response_bytes(std::uint64_t num_observables) {
  return sizeof(DecodeResponse) + static_cast<std::size_t>((num_observables + 63) / 64) * sizeof(std::uint64_t);
}

} // namespace cudaq::qec::realtime

#endif
