// SPDX-License-Identifier: Apache-2.0
// An exchange on a ring of the library, without threads: the test is the dispatcher, and calls turns and polls itself.
#pragma once

#include "lib/transport/datagram/datagram_exchange.h"
#include "lib/transport/udp/udp_wire.h"
#include "unittests/transport/datagram/udp_peer.h"

namespace cudaq::realtime::test {

inline detail::datagram_options small_slots(std::uint32_t num_slots = 4, std::uint32_t slot_size = 64) {
  detail::datagram_options options;
  options.num_slots = num_slots;
  options.slot_size = slot_size;
  return options;
}

struct exchange_on_a_ring {
  explicit exchange_on_a_ring(const detail::datagram_options &options)
      : memory({options.num_slots, options.slot_size, false}),
        exchange(options, detail::make_udp_wire(options.slot_size), memory.ring) {
    EXPECT_EQ(exchange.open().text(), "");
    port = exchange.socket().port();
  }

  bytes request(std::uint32_t slot) const {
    return {memory.rx_slot(slot), memory.rx_slot(slot) + exchange.options().slot_size};
  }
  std::uint32_t id_in(std::uint32_t slot) const {
    cudaq_rpc_header_t header;
    std::memcpy(&header, memory.rx_slot(slot), sizeof(header));
    return header.request_id;
  }
  /// Writes an answer to the TX slot, as a dispatcher does.
  void write_answer(std::uint32_t slot, const bytes &result) {
    const cudaq_rpc_response_t header = {CUDAQ_RPC_MAGIC_RESPONSE, 0, static_cast<std::uint32_t>(result.size()),
                                         id_in(slot), 0};
    std::memcpy(memory.tx_slot(slot), &header, sizeof(header));
    std::copy(result.begin(), result.end(), memory.tx_slot(slot) + sizeof(header));
  }

  host_ring memory;
  detail::datagram_exchange exchange;
  std::uint32_t port = 0;
};

} // namespace cudaq::realtime::test
