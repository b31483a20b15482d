// SPDX-License-Identifier: Apache-2.0
// Reads and writes frame headers. Slots are 8-byte aligned, so a header takes three 8-byte accesses. The words of a
// slot are loaded once each. After the judgement only registers or the copy are used: later writes of a requester have
// no effect.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"
#include "cudaq/realtime/detail/base/slot_memory.h"
#include "cudaq/realtime/detail/ring/slot_ring.h"

#include <cstring>

namespace cudaq::realtime::detail {

/// A request header in registers. It remains known after the slot is overwritten.
struct request {
  std::uint32_t magic = 0;
  std::uint32_t function_id = 0;
  std::uint32_t arg_len = 0;
  std::uint32_t request_id = 0;
  std::uint64_t ptp_timestamp = 0;
};
static_assert(sizeof(request) == CUDAQ_RPC_HEADER_SIZE);

/// A response header in registers.
struct response {
  std::uint32_t magic = 0;
  std::int32_t status = 0;
  std::uint32_t result_len = 0;
  std::uint32_t request_id = 0;
  std::uint64_t ptp_timestamp = 0;
};
static_assert(sizeof(response) == CUDAQ_RPC_HEADER_SIZE);

/// Reads the header in a slot.
template <class Header>
CUDAQ_REALTIME_HOST_DEVICE inline Header read_header(const std::uint8_t *slot) {
  const std::uint64_t words[] = {load_frame<std::uint64_t>(slot), load_frame<std::uint64_t>(slot + 8),
                                 load_frame<std::uint64_t>(slot + 16)};
  Header header;
  static_assert(sizeof(words) == sizeof(header));
  std::memcpy(&header, words, sizeof(header));
  return header;
}

/// Reads the header of a frame that was copied to memory of the reader's own, aligned to 8.
template <class Header>
CUDAQ_REALTIME_HOST_DEVICE inline Header copied_header(const std::uint8_t *frame) {
  Header header;
  std::memcpy(&header, __builtin_assume_aligned(frame, 8), sizeof(header));
  return header;
}

/// Writes a header to a slot or to another place aligned to 8.
template <class Header>
CUDAQ_REALTIME_HOST_DEVICE inline void write_header(std::uint8_t *frame, const Header &header) {
#if defined(__CUDA_ARCH__)
  std::memcpy(__builtin_assume_aligned(frame, 8), &header, sizeof(header));
#else
  std::uint64_t words[3];
  static_assert(sizeof(words) == sizeof(header));
  std::memcpy(words, &header, sizeof(header));
  store_frame(frame, words[0]);
  store_frame(frame + 8, words[1]);
  store_frame(frame + 16, words[2]);
#endif
}

/// Writes the header of a request. Magic and function id are one store: a dispatcher of a shared ring may read them
/// before the request is signalled (docs/ring_protocol.md section 9).
CUDAQ_REALTIME_HOST_DEVICE inline void write_request(std::uint8_t *rx_slot, const request &r) {
#if !defined(__CUDA_ARCH__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  // Joined by shifts: joining two fields in memory would delay the store.
  store_first_word(rx_slot, r.magic | std::uint64_t{r.function_id} << 32);
  store_frame(rx_slot + 8, r.arg_len | std::uint64_t{r.request_id} << 32);
  store_frame(rx_slot + 16, r.ptp_timestamp);
#else
  std::uint64_t first = 0;
  std::memcpy(&first, &r, sizeof(first));
  store_first_word(rx_slot, first);
  std::memcpy(rx_slot + sizeof(first), reinterpret_cast<const std::uint8_t *>(&r) + sizeof(first),
              sizeof(r) - sizeof(first));
#endif
}

/// Writes the response header for the request `to`, with the id and timestamp of that request.
CUDAQ_REALTIME_HOST_DEVICE inline void write_response(std::uint8_t *tx_slot, const request &to, std::int32_t status,
                                                      std::uint32_t result_len) {
#if defined(__CUDA_ARCH__)
  write_header(tx_slot, response{CUDAQ_RPC_MAGIC_RESPONSE, status, result_len, to.request_id, to.ptp_timestamp});
#else // field by field: joining two fields in memory would delay the store
  store_frame<std::uint32_t>(tx_slot, CUDAQ_RPC_MAGIC_RESPONSE);
  store_frame<std::int32_t>(tx_slot + 4, status);
  store_frame<std::uint32_t>(tx_slot + 8, result_len);
  store_frame<std::uint32_t>(tx_slot + 12, to.request_id);
  store_frame<std::uint64_t>(tx_slot + 16, to.ptp_timestamp);
#endif
}

} // namespace cudaq::realtime::detail
