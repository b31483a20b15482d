// SPDX-License-Identifier: Apache-2.0
// The header of an answer: written by the pipeline, or found where the CPU stage has written one.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace cudaq::qec::realtime::detail {

/// An answer as the dispatcher takes it; the result stands after the slot's header.
struct answer {
  std::int32_t status = CUDAQ_RPC_OK;
  std::uint32_t result_size = 0;
  int stage_error = 0; ///< of the GPU stage: with LAUNCH_FAILED only
};

inline cudaq_rpc_response_t header_at(const std::uint8_t *at) {
  cudaq_rpc_response_t header;
  std::memcpy(&header, at, sizeof(header));
  return header;
}

/// A response's header stands there. In a slot, a CPU stage has written it: the request's, or zeros, stood there
/// before.
inline bool is_framed(const std::uint8_t *at) { return header_at(at).magic == CUDAQ_RPC_MAGIC_RESPONSE; }

/// What cudaq_host_complete_deferred takes: it knows one status that is none.
inline answer checked_answer(std::int32_t status, std::size_t size, std::size_t max_size) {
  if (size > max_size)
    return {CUDAQ_RPC_ERR_RESULT_TOO_LARGE, 0};
  if (status == CUDAQ_HOST_CALL_DEFERRED)
    return {CUDAQ_RPC_ERR_NO_RESPONSE, 0};
  return {status, static_cast<std::uint32_t>(size)};
}

/// The answer that the slot's own header says.
inline answer own_answer(const std::uint8_t *tx_slot, std::size_t max_size) {
  const cudaq_rpc_response_t header = header_at(tx_slot);
  return checked_answer(header.status, header.result_len, max_size);
}

/// The header of a frame with which `size` bytes begin, if there is one that fits into them. Read once: a stage that is
/// late may still write there.
inline std::optional<cudaq_rpc_response_t> frame_at_start(const std::uint8_t *result, std::size_t size) {
  if (size < CUDAQ_RPC_HEADER_SIZE)
    return std::nullopt;
  const cudaq_rpc_response_t inside = header_at(result);
  if (inside.magic != CUDAQ_RPC_MAGIC_RESPONSE || inside.result_len > size - CUDAQ_RPC_HEADER_SIZE)
    return std::nullopt;
  return inside;
}

/// Takes out the frame with this header, with which `result` begins, and moves the frame's result into its place.
inline answer unpacked_answer(std::uint8_t *result, const cudaq_rpc_response_t &inside, std::size_t max_size) {
  std::memmove(result, result + CUDAQ_RPC_HEADER_SIZE, inside.result_len);
  std::memset(result + inside.result_len, 0, CUDAQ_RPC_HEADER_SIZE); // or a next answer might pass for framed
  return checked_answer(inside.status, inside.result_len, max_size);
}

/// What a CPU stage has answered that returned `size` bytes. tx_slot: its header, then `max_size` bytes. Its header may
/// stand in front of the result or be the first bytes of what it returned.
inline answer framed_answer(std::uint8_t *tx_slot, std::size_t size, std::size_t max_size) {
  if (is_framed(tx_slot))
    return own_answer(tx_slot, max_size);
  std::uint8_t *const result = tx_slot + CUDAQ_RPC_HEADER_SIZE;
  const auto inside = size <= max_size ? frame_at_start(result, size) : std::nullopt;
  if (inside && inside->result_len == size - CUDAQ_RPC_HEADER_SIZE)
    return unpacked_answer(result, *inside, max_size);
  return checked_answer(CUDAQ_RPC_OK, size, max_size);
}

/// A deferred answer that came without a size: a header says it, in either place.
inline answer written_answer(std::uint8_t *tx_slot, std::size_t max_size) {
  if (is_framed(tx_slot))
    return own_answer(tx_slot, max_size);
  std::uint8_t *const result = tx_slot + CUDAQ_RPC_HEADER_SIZE;
  if (const auto inside = frame_at_start(result, max_size))
    return unpacked_answer(result, *inside, max_size);
  return {CUDAQ_RPC_ERR_NO_RESPONSE, 0};
}

} // namespace cudaq::qec::realtime::detail
