// SPDX-License-Identifier: Apache-2.0
// The header of an answer: written by the pipeline, or found where the CPU stage has written one.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cudaq::qec::realtime::detail {

/// An answer as the dispatcher takes it; the result stands behind the slot's header.
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

/// A CPU stage has written the slot's own header; the request's, or zeros, stood there before.
inline bool is_framed(const std::uint8_t *tx_slot) { return header_at(tx_slot).magic == CUDAQ_RPC_MAGIC_RESPONSE; }

/// What cudaq_host_complete_deferred takes: it knows one status that is none.
inline answer checked_answer(std::int32_t status, std::size_t size, std::size_t max_size) {
  if (size > max_size)
    return {CUDAQ_RPC_ERR_RESULT_TOO_LARGE, 0};
  if (status == CUDAQ_HOST_CALL_DEFERRED)
    return {CUDAQ_RPC_ERR_NO_RESPONSE, 0};
  return {status, static_cast<std::uint32_t>(size)};
}

/// Takes a frame out that stands behind the slot's own header, and moves its result into its place.
inline answer unpacked_answer(std::uint8_t *result, const cudaq_rpc_response_t &inside, std::size_t max_size) {
  std::memmove(result, result + CUDAQ_RPC_HEADER_SIZE, inside.result_len);
  std::memset(result + inside.result_len, 0, CUDAQ_RPC_HEADER_SIZE); // or a next answer might pass for framed
  return checked_answer(inside.status, inside.result_len, max_size);
}

/// What a CPU stage has answered that returned `size` bytes. tx_slot: its header, then `max_size` bytes. Its header may
/// stand in front of the result or be the first bytes of what it returned.
inline answer framed_answer(std::uint8_t *tx_slot, std::size_t size, std::size_t max_size) {
  if (is_framed(tx_slot))
    return checked_answer(header_at(tx_slot).status, header_at(tx_slot).result_len, max_size);
  std::uint8_t *const result = tx_slot + CUDAQ_RPC_HEADER_SIZE;
  if (size <= max_size && size >= CUDAQ_RPC_HEADER_SIZE) {
    const cudaq_rpc_response_t inside = header_at(result);
    if (inside.magic == CUDAQ_RPC_MAGIC_RESPONSE && inside.result_len == size - CUDAQ_RPC_HEADER_SIZE)
      return unpacked_answer(result, inside, max_size);
  }
  return checked_answer(CUDAQ_RPC_OK, size, max_size);
}

/// A deferred answer whose size nobody has said: a header tells it, in either place.
inline answer written_answer(std::uint8_t *tx_slot, std::size_t max_size) {
  if (is_framed(tx_slot))
    return checked_answer(header_at(tx_slot).status, header_at(tx_slot).result_len, max_size);
  std::uint8_t *const result = tx_slot + CUDAQ_RPC_HEADER_SIZE;
  if (max_size >= CUDAQ_RPC_HEADER_SIZE) {
    const cudaq_rpc_response_t inside = header_at(result);
    if (inside.magic == CUDAQ_RPC_MAGIC_RESPONSE && inside.result_len <= max_size - CUDAQ_RPC_HEADER_SIZE)
      return unpacked_answer(result, inside, max_size);
  }
  return {CUDAQ_RPC_ERR_NO_RESPONSE, 0};
}

} // namespace cudaq::qec::realtime::detail
