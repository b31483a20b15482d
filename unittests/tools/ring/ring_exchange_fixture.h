// SPDX-License-Identifier: Apache-2.0
// A dispatcher on the host path that answers the measuring clients of a ring. Needs no GPU.
#pragma once

#include "tools/ring/ring_exchange.h"
#include "tools/services/host_service.h"

#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

namespace cudaq::realtime::tools {

inline constexpr std::uint32_t kExchangeFunction = fnv1a_hash("ring_exchange_test");
inline constexpr std::uint64_t kDeadlineNs = 20'000'000'000u;

/// How answer_by_rule() answers: by this rule, with every `spoil_every`th reply wrong; 0: none.
struct server_behaviour {
  reply_rule rule = reply_rule::echo;
  std::uint64_t spoil_every = 0;
  std::atomic<std::uint64_t> calls{0};
};

inline std::int32_t answer_by_rule(cudaq_host_call_t *call, void *user) {
  auto &how = *static_cast<server_behaviour *>(user);
  std::vector<std::uint8_t> bytes(call->payload_len);
  std::uint32_t first = 0;
  if (!bytes.empty()) {
    std::memcpy(bytes.data(), call->payload, bytes.size());
    std::memcpy(&first, bytes.data(), sizeof first);
  }
  for (std::size_t i = 0; how.rule == reply_rule::add_bytes && i < bytes.size(); ++i)
    bytes[i] = static_cast<std::uint8_t>(bytes[i] + 1);
  for (std::size_t i = 0; how.rule == reply_rule::transform && i < bytes.size(); i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, &bytes[i], sizeof word);
    word = transform(word);
    std::memcpy(&bytes[i], &word, sizeof word);
  }
  for (std::size_t i = 0; how.rule == reply_rule::add_words && i < bytes.size(); i += sizeof first) {
    std::uint32_t word = 0;
    std::memcpy(&word, &bytes[i], sizeof word);
    ++word;
    std::memcpy(&bytes[i], &word, sizeof word);
  }
  if (how.rule == reply_rule::last_word) {
    const std::uint32_t last = ~first;
    std::memset(bytes.data(), 0, bytes.size());
    std::memcpy(&bytes[bytes.size() - sizeof last], &last, sizeof last);
  }
  if (how.spoil_every != 0 && how.calls.fetch_add(1) % how.spoil_every == 0)
    bytes.back() ^= 1;
  std::copy(bytes.begin(), bytes.end(), static_cast<std::uint8_t *>(call->result));
  call->result_len = call->payload_len;
  return CUDAQ_RPC_OK;
}

class ring_exchange_test : public ::testing::Test {
protected:
  host_service &start(std::uint32_t slots, std::size_t payload_bytes) {
    ring_service_config c;
    c.num_slots = slots;
    c.slot_bytes = CUDAQ_RPC_HEADER_SIZE + static_cast<std::uint32_t>(payload_bytes);
    c.options = default_options();
    c.options.wait_policy = CUDAQ_WAIT_SPIN_YIELD;
    service_ = std::make_unique<host_service>(c, kExchangeFunction, &answer_by_rule, behaviour_, nullptr);
    service_->start();
    return *service_;
  }
  static exchange_config client(std::uint64_t exchanges, std::size_t payload_bytes, reply_rule rule) {
    exchange_config c;
    c.exchanges = exchanges;
    c.warm_up = 32;
    c.payload_bytes = payload_bytes;
    c.function_id = kExchangeFunction;
    c.rule = rule;
    c.timeout_ns = kDeadlineNs;
    c.share_core = true;
    return c;
  }

  /// A ring without a dispatcher.
  const cudaq_ringbuffer_t &unserved(std::uint32_t slots) {
    host_service &service = start(slots, 8);
    service.stop();
    return service.ring();
  }

  const std::shared_ptr<server_behaviour> behaviour_ = std::make_shared<server_behaviour>();
  std::unique_ptr<host_service> service_;
  const tick_scale scale_;
};

} // namespace cudaq::realtime::tools
