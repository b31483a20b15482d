// SPDX-License-Identifier: Apache-2.0
// The header of an answer: the pipeline writes it, or the CPU stage has written it.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace cudaq::qec::realtime::detail {

/// An answer in the form that the dispatcher takes. The result is in the slot, after the header.
struct answer {
  std::int32_t status = CUDAQ_RPC_OK;
  std::uint32_t result_size = 0;
  int stage_error = 0; ///< of the GPU stage; only with LAUNCH_FAILED
};

inline cudaq_rpc_response_t header_at(const std::uint8_t *at) {
  cudaq_rpc_response_t header;
  std::memcpy(&header, at, sizeof(header));
  return header;
}

/// There is a response header at `at`. In a slot the CPU stage has written it: before, the slot held the request's
/// header or zeros.
inline bool is_framed(const std::uint8_t *at) { return header_at(at).magic == CUDAQ_RPC_MAGIC_RESPONSE; }

/// Makes an answer that cudaq_host_complete_deferred accepts: it rejects one status value, and results that do not fit.
inline answer checked_answer(std::int32_t status, std::size_t size, std::size_t max_size) {
  if (size > max_size)
    return {CUDAQ_RPC_ERR_RESULT_TOO_LARGE, 0};
  if (status == CUDAQ_HOST_CALL_DEFERRED)
    return {CUDAQ_RPC_ERR_NO_RESPONSE, 0};
  return {status, static_cast<std::uint32_t>(size)};
}

/// The answer in the slot's own header.
inline answer own_answer(const std::uint8_t *tx_slot, std::size_t max_size) {
  const cudaq_rpc_response_t header = header_at(tx_slot);
  return checked_answer(header.status, header.result_len, max_size);
}

/// The header of a frame at the start of the `size` bytes, if there is one and the frame fits into them. The header
/// is read once: a late stage may still write there.
inline std::optional<cudaq_rpc_response_t> frame_at_start(const std::uint8_t *result, std::size_t size) {
  if (size < CUDAQ_RPC_HEADER_SIZE)
    return std::nullopt;
  const cudaq_rpc_response_t inside = header_at(result);
  if (inside.magic != CUDAQ_RPC_MAGIC_RESPONSE || inside.result_len > size - CUDAQ_RPC_HEADER_SIZE)
    return std::nullopt;
  return inside;
}

/// Removes the header `inside` from the start of `result`, and moves the frame's result into its place.
inline answer unpacked_answer(std::uint8_t *result, const cudaq_rpc_response_t &inside, std::size_t max_size) {
  std::memmove(result, result + CUDAQ_RPC_HEADER_SIZE, inside.result_len);
  std::memset(result + inside.result_len, 0, CUDAQ_RPC_HEADER_SIZE); // so that a later answer is not taken for a frame
  return checked_answer(inside.status, inside.result_len, max_size);
}

/// The answer of a CPU stage that returned `size` bytes. tx_slot: the slot's header, then `max_size` bytes. The stage
/// may have written a response header before the result area, or as its first bytes.
inline answer framed_answer(std::uint8_t *tx_slot, std::size_t size, std::size_t max_size) {
  if (is_framed(tx_slot))
    return own_answer(tx_slot, max_size);
  std::uint8_t *const result = tx_slot + CUDAQ_RPC_HEADER_SIZE;
  const auto inside = size <= max_size ? frame_at_start(result, size) : std::nullopt;
  if (inside && inside->result_len == size - CUDAQ_RPC_HEADER_SIZE)
    return unpacked_answer(result, *inside, max_size);
  return checked_answer(CUDAQ_RPC_OK, size, max_size);
}

/// A deferred answer without a size: a response header in one of these two places has the size.
inline answer written_answer(std::uint8_t *tx_slot, std::size_t max_size) {
  if (is_framed(tx_slot))
    return own_answer(tx_slot, max_size);
  std::uint8_t *const result = tx_slot + CUDAQ_RPC_HEADER_SIZE;
  if (const auto inside = frame_at_start(result, max_size))
    return unpacked_answer(result, *inside, max_size);
  return {CUDAQ_RPC_ERR_NO_RESPONSE, 0};
}

} // namespace cudaq::qec::realtime::detail
