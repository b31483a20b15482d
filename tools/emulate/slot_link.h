// SPDX-License-Identifier: Apache-2.0
// A link whose requests and answers lie in the slots of a ring.
#pragma once

#include "tools/emulate/link.h"
#include "tools/ring/ring_client.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace cudaq::realtime::tools {

/// Slots are filled in ring order, and answers come in any order.
class slot_link : public link {
public:
  bool send(std::uint32_t id, std::uint32_t function_id, std::span<const std::uint8_t> payload,
            std::uint64_t timestamp) override;
  std::optional<link_answer> receive() override;
  /// The slot stays with the server, which may still answer in it. It is used again if the server has dropped the
  /// request, which leaves the slot free.
  void give_up(std::uint32_t id) override;
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
  std::vector<std::uint64_t> given_up_; ///< for each slot: the last request to it that was given up
  std::uint64_t unexpected_ = 0;
};

} // namespace cudaq::realtime::tools
