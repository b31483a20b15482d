// SPDX-License-Identifier: Apache-2.0
// Reads and writes frame headers in slots. Slots are 8-byte aligned, so a header takes three 8-byte accesses.
#pragma once

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

template <class Header>
CUDAQ_REALTIME_HOST_DEVICE inline Header read_header(const std::uint8_t *slot) {
  Header header;
  std::memcpy(&header, __builtin_assume_aligned(slot, 8), sizeof(header));
  return header;
}

template <class Header>
CUDAQ_REALTIME_HOST_DEVICE inline void write_header(std::uint8_t *slot, const Header &header) {
  std::memcpy(__builtin_assume_aligned(slot, 8), &header, sizeof(header));
}

/// Writes the header of a request. Magic and function id are one store: a dispatcher of a shared ring may read them
/// before the request is signalled (docs/ring_protocol.md section 9).
CUDAQ_REALTIME_HOST_DEVICE inline void write_request(std::uint8_t *rx_slot, const request &r) {
  std::uint64_t first = 0;
  std::memcpy(&first, &r, sizeof(first));
  store_first_word(rx_slot, first);
  std::memcpy(rx_slot + sizeof(first), reinterpret_cast<const std::uint8_t *>(&r) + sizeof(first),
              sizeof(r) - sizeof(first));
}

/// Writes the response header for the request `to`, with the id and timestamp of that request.
CUDAQ_REALTIME_HOST_DEVICE inline void write_response(std::uint8_t *tx_slot, const request &to, std::int32_t status,
                                                      std::uint32_t result_len) {
  write_header(tx_slot, response{CUDAQ_RPC_MAGIC_RESPONSE, status, result_len, to.request_id, to.ptp_timestamp});
}

} // namespace cudaq::realtime::detail
