/* SPDX-License-Identifier: Apache-2.0 */
// The payload that the decode stage writes after the response header.
#ifndef CUDAQ_QEC_REALTIME_DECODE_RESPONSE_H
#define CUDAQ_QEC_REALTIME_DECODE_RESPONSE_H

#include <cstddef>
#include <cstdint>

namespace cudaq::qec::realtime {

/// The first 8 bytes of a decode result, little-endian. The answer follows: ceil(observables / 64) words of 8 bytes,
/// observable k in bit k % 64 of word k / 64, unused bits 0. It is the logical frame of the predecoder XOR the
/// matching of its residual. The counts are statistics. Nothing follows if `converged` is 0.
struct __attribute__((packed)) DecodeResponse {
  std::int32_t total_corrections; ///< observables that the answer flips
  std::int32_t converged;         ///< 1: an answer follows; 0: no answer, the response's status has the reason
};
static_assert(sizeof(DecodeResponse) == 8, "travels on the wire");

/// Bytes of a decode result with this number of observables.
constexpr std::size_t decode_response_bytes(std::uint64_t num_observables) {
  return sizeof(DecodeResponse) + static_cast<std::size_t>((num_observables + 63) / 64) * sizeof(std::uint64_t);
}

} // namespace cudaq::qec::realtime

#endif
