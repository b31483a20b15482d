// SPDX-License-Identifier: Apache-2.0
// A link whose requests and answers lie in the slots of a ring.
#pragma once

#include "tools/emulate/link.h"
#include "tools/ring/ring_client.h"

#include <cstdint>
#include <optional>
#include <span>

namespace cudaq::realtime::tools {

/// Slots are filled in ring order, and answers come in any order.
class slot_link : public link {
public:
  bool send(std::uint32_t id, std::uint32_t function_id, std::span<const std::uint8_t> payload,
            std::uint64_t timestamp) override;
  std::optional<link_answer> receive() override;
  /// The slot stays with the server, which may still answer in it.
  void give_up(std::uint32_t) override {}
  link_counters counters() const override { return {0, unexpected_, 0}; }

protected:
  /// Before the first request. The ring of the port must outlive the link.
  void use_ring(const ring_port &port, std::uint32_t num_slots);

private:
  struct client {
    client(const ring_port &port, std::uint32_t num_slots)
        : sent(num_slots), producer(port, sent), consumer(port, sent) {}
    sent_requests sent;
    ring_producer producer;
    ring_consumer consumer;
  };
  std::optional<client> client_;
  std::uint64_t unexpected_ = 0;
};

} // namespace cudaq::realtime::tools
