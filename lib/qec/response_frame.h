// SPDX-License-Identifier: Apache-2.0
// The header of an answer: written by the pipeline, or found where the CPU stage has written one.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cudaq::qec::realtime::detail {

/// An answer as the dispatcher takes it; the result stands behind the slot's header.
struct answer {
  std::int32_t status = CUDAQ_RPC_OK;
  std::uint32_t result_size = 0;
};

inline cudaq_rpc_response_t header_at(const std::uint8_t *at) {
  cudaq_rpc_response_t header;
  std::memcpy(&header, at, sizeof(header));
  return header;
}

inline answer checked_answer(std::int32_t status, std::size_t size, std::size_t max_size) {
  if (size > max_size)
    return {CUDAQ_RPC_ERR_RESULT_TOO_LARGE, 0};
  return {status, static_cast<std::uint32_t>(size)};
}

/// What a CPU stage has answered that returned `size` bytes. tx_slot: its header, then `max_size` bytes. A header behind
/// the slot's own is taken out, and what follows it moves into its place.
inline answer framed_answer(std::uint8_t *tx_slot, std::size_t size, std::size_t max_size) {
  const cudaq_rpc_response_t own = header_at(tx_slot);
  if (own.magic == CUDAQ_RPC_MAGIC_RESPONSE)
    return checked_answer(own.status, own.result_len, max_size);
  std::uint8_t *const result = tx_slot + CUDAQ_RPC_HEADER_SIZE;
  if (size <= max_size && size >= CUDAQ_RPC_HEADER_SIZE) {
    const cudaq_rpc_response_t inside = header_at(result);
    if (inside.magic == CUDAQ_RPC_MAGIC_RESPONSE && inside.result_len == size - CUDAQ_RPC_HEADER_SIZE) {
      std::memmove(result, result + CUDAQ_RPC_HEADER_SIZE, inside.result_len);
      return {inside.status, inside.result_len};
    }
  }
  return checked_answer(CUDAQ_RPC_OK, size, max_size);
}

/// What stands in front of a deferred result whose size nobody has said.
inline answer written_answer(const std::uint8_t *tx_slot, std::size_t max_size) {
  const cudaq_rpc_response_t own = header_at(tx_slot);
  if (own.magic != CUDAQ_RPC_MAGIC_RESPONSE)
    return {CUDAQ_RPC_ERR_NO_RESPONSE, 0};
  return checked_answer(own.status, own.result_len, max_size);
}

} // namespace cudaq::qec::realtime::detail
