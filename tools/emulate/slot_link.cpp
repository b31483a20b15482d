// SPDX-License-Identifier: Apache-2.0
#include "tools/emulate/slot_link.h"

namespace cudaq::realtime::tools {

void slot_link::use_ring(const ring_port &port, std::uint32_t num_slots) {
  client_.emplace(port, num_slots);
  given_up_.assign(num_slots, UINT64_MAX);
}

bool slot_link::send(std::uint32_t id, std::uint32_t function_id, std::span<const std::uint8_t> payload,
                     std::uint64_t timestamp) {
  if (id != static_cast<std::uint32_t>(client_->producer.sent())) [[unlikely]]
    throw api_error("the ids of requests are not consecutive");
  const std::uint64_t sent = client_->producer.sent(), slots = given_up_.size();
  if (sent >= slots && given_up_[sent % slots] == sent - slots)
    client_->consumer.drop_if_free(sent - slots);
  return client_->producer.try_send(function_id, payload, 0, 0, timestamp);
}

std::optional<link_answer> slot_link::receive() {
  while (const std::optional<answer> a = client_->consumer.next()) {
    if (a->fault == answer_fault::none || a->fault == answer_fault::wrong_timestamp) // the player checks the time
      return link_answer{a->header, a->result};
    ++unexpected_;
  }
  return std::nullopt;
}

void slot_link::give_up(std::uint32_t id) {
  const std::uint64_t sent = client_->producer.sent();
  const std::uint64_t sequence = sent - (static_cast<std::uint32_t>(sent) - id); // ids are its low 32 bits
  given_up_[sequence % given_up_.size()] = sequence;
}

} // namespace cudaq::realtime::tools
