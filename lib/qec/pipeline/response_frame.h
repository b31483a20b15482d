// SPDX-License-Identifier: Apache-2.0
// The header of an answer: the pipeline writes it, or a stage has written it and says so (FRAMED_RESPONSE). The bytes
// of a result are never taken for a header otherwise.
#pragma once

#include "cudaq/qec/realtime/pipeline.h"
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_types.h"
#include "cudaq/realtime/detail/base/slot_memory.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace cudaq::qec::realtime::detail {

/// An answer in the form that the dispatcher takes. The result is in the slot, after the header.
struct answer {
  std::int32_t status = CUDAQ_RPC_OK;
  std::uint32_t result_size = 0;
  int stage_error = 0; ///< of the GPU stage; only with LAUNCH_FAILED and DEVICE_FAULT
};

/// Reads the header at `at`, aligned to 8. Each word is loaded once: a late stage or a requester may write there.
inline cudaq_rpc_response_t header_at(const std::uint8_t *at) {
  using cudaq::realtime::detail::load_frame;
  const std::uint64_t words[] = {load_frame<std::uint64_t>(at), load_frame<std::uint64_t>(at + 8),
                                 load_frame<std::uint64_t>(at + 16)};
  cudaq_rpc_response_t header;
  static_assert(sizeof(words) == sizeof(header));
  std::memcpy(&header, words, sizeof(header));
  return header;
}

/// It is a response header. In a slot the stage has written it: before, the slot held the header of the request, or
/// zeros.
inline bool is_framed(const cudaq_rpc_response_t &header) { return header.magic == CUDAQ_RPC_MAGIC_RESPONSE; }

/// Makes an answer that cudaq_host_complete_deferred accepts: it rejects one status value, and results that do not fit.
inline answer checked_answer(std::int32_t status, std::size_t size, std::size_t max_size) {
  if (size > max_size)
    return {CUDAQ_RPC_ERR_RESULT_TOO_LARGE, 0};
  if (status == CUDAQ_HOST_CALL_DEFERRED)
    return {CUDAQ_RPC_ERR_NO_RESPONSE, 0};
  return {status, static_cast<std::uint32_t>(size)};
}

/// The answer in the slot's own header.
inline answer own_answer(const cudaq_rpc_response_t &header, std::size_t max_size) {
  return checked_answer(header.status, header.result_len, max_size);
}

/// The header of a frame at the start of the `size` bytes, if there is one and the frame fits into them.
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

/// The answer of a stage, or of a thread that completes a deferred request, that says that it has written a response
/// header: before the result area, or as its first bytes. Only then are these bytes read as a header.
inline answer framed_answer(std::uint8_t *tx_slot, std::size_t max_size) {
  if (const cudaq_rpc_response_t own = header_at(tx_slot); is_framed(own))
    return own_answer(own, max_size);
  std::uint8_t *const result = tx_slot + CUDAQ_RPC_HEADER_SIZE;
  if (const auto inside = frame_at_start(result, max_size))
    return unpacked_answer(result, *inside, max_size);
  return {CUDAQ_RPC_ERR_NO_RESPONSE, 0};
}

/// The result of a stage: its size, or FRAMED_RESPONSE.
inline answer stage_answer(std::uint8_t *tx_slot, std::size_t size, std::size_t max_size) {
  return size == experimental::FRAMED_RESPONSE ? framed_answer(tx_slot, max_size)
                                               : checked_answer(CUDAQ_RPC_OK, size, max_size);
}

} // namespace cudaq::qec::realtime::detail
