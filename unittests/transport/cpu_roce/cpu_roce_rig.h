// SPDX-License-Identifier: Apache-2.0
// The provider over the test double of an adapter, and its peer.
#pragma once

#include "lib/transport/cpu_roce/cpu_roce_instance.h"
#include "unittests/support/host_fixture.h"
#include "unittests/support/rdma_double.h"

namespace cudaq::realtime::test {

inline std::vector<std::uint8_t> request_frame(std::uint32_t id, const std::vector<std::uint8_t> &payload = {},
                                               std::uint32_t function = 5,
                                               std::uint32_t magic = CUDAQ_RPC_MAGIC_REQUEST) {
  const cudaq_rpc_header_t header = {magic, function, static_cast<std::uint32_t>(payload.size()), id, id + 1000};
  const auto *const bytes = reinterpret_cast<const std::uint8_t *>(&header);
  std::vector<std::uint8_t> frame(bytes, bytes + sizeof(header));
  frame.insert(frame.end(), payload.begin(), payload.end());
  return frame;
}

inline cudaq_rpc_response_t response_of(const std::vector<std::uint8_t> &frame) {
  cudaq_rpc_response_t header{};
  if (frame.size() >= sizeof(header))
    std::memcpy(&header, frame.data(), sizeof(header));
  return header;
}

inline detail::cpu_roce_options rig_options() {
  detail::cpu_roce_options options;
  options.local_ip = options.listen_ip = "127.0.0.1";
  options.local_address = 0x7F000001;
  options.num_slots = 4;
  options.frame_size = options.slot_size = 256;
  return options;
}

/// Opens the double.
inline detail::port_opener opener_of(const std::shared_ptr<rdma_double_state> &adapter) {
  return [adapter](const detail::rdma_port_options &options, const detail::rdma_memory &memory,
                   std::unique_ptr<detail::rdma_port> &out) {
    adapter->options = options;
    adapter->memory = memory;
    out = std::make_unique<rdma_double_port>(adapter);
    return detail::expected<>{};
  };
}

/// The exchange over the double, without threads: the test polls, answers, and plays the peer.
struct exchange_rig {
  explicit exchange_rig(const detail::cpu_roce_options &o = rig_options())
      : memory({o.num_slots, o.slot_size, false}), exchange(o, memory.ring) {
    adapter->slot_size = o.slot_size;
    detail::rdma_port_options options;
    options.reliable = o.reliable;
    options.frame_size = o.frame_size;
    options.receives = exchange.max_receives();
    options.sends = exchange.max_sends();
    (void)opener_of(adapter)(options, exchange.memory(), port);
    attach();
    (void)exchange.launch();
  }
  void attach() {
    std::unique_ptr<detail::rdma_queue_pair> pair;
    (void)port->make_queue_pair(pair);
    (void)pair->start({7, 0x7F000001}, exchange.max_receives());
    exchange.attach(std::move(pair));
  }
  bool write(std::uint32_t slot, const std::vector<std::uint8_t> &frame) { return adapter->write(slot, frame, slot); }
  /// A request arrives, and the loop takes it.
  void request(std::uint32_t slot, std::uint32_t id, const std::vector<std::uint8_t> &payload = {}) {
    ASSERT_TRUE(write(slot, request_frame(id, payload)));
    ASSERT_EQ(exchange.poll(), std::optional<std::uint32_t>(slot));
  }
  /// Requests first to end - 1 arrive in the slots of their numbers, and the loop takes the first `taken` of them.
  void arrive(std::uint32_t first, std::uint32_t end, std::uint32_t taken) {
    for (std::uint32_t i = first; i < end; ++i)
      ASSERT_TRUE(write(i, request_frame(i)));
    for (std::uint32_t i = first; i < first + taken; ++i)
      ASSERT_EQ(exchange.poll(), std::optional<std::uint32_t>(i));
  }
  /// Answers with the status 0 and so many bytes of 0xAB.
  void answer(std::uint32_t slot, std::uint32_t id, std::uint32_t result_len = 0) {
    const cudaq_rpc_response_t header = {CUDAQ_RPC_MAGIC_RESPONSE, 0, result_len, id, id + 1000};
    std::memcpy(memory.tx_slot(slot), &header, sizeof(header));
    std::memset(memory.tx_slot(slot) + sizeof(header), 0xAB,
                std::min<std::size_t>(result_len, exchange.options().slot_size - sizeof(header)));
    EXPECT_EQ(exchange.answer(slot).text(), "");
  }
  cudaq_rpc_response_t next_answer() { return response_of(adapter->take_frame()); }

  std::shared_ptr<rdma_double_state> adapter = std::make_shared<rdma_double_state>();
  host_ring memory;
  detail::cpu_roce_exchange exchange;
  std::unique_ptr<detail::rdma_port> port;
};

} // namespace cudaq::realtime::test
