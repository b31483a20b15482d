// SPDX-License-Identifier: Apache-2.0
// The clients of `cudaq-realtime-bench device`, with a host dispatcher and with a hand-written floor. Needs no GPU.
#include "benchmarks/device/bench_client.h"
#include "tools/services/host_service.h"

#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"

#include <atomic>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint32_t kFunction = fnv1a_hash("bench_client_test");
constexpr std::uint64_t kDeadlineNs = 20'000'000'000u;

/// How serve() answers: by this rule, with every `spoil_every`th reply wrong (0: no reply).
struct server_behaviour {
  reply_rule rule = reply_rule::echo;
  std::uint64_t spoil_every = 0;
  std::atomic<std::uint64_t> calls{0};
};

std::int32_t serve(cudaq_host_call_t *call, void *user) {
  auto &how = *static_cast<server_behaviour *>(user);
  std::vector<std::uint8_t> bytes(call->payload_len);
  std::memcpy(bytes.data(), call->payload, bytes.size());
  std::uint32_t first = 0;
  std::memcpy(&first, bytes.data(), sizeof first);
  for (std::size_t i = 0; how.rule == reply_rule::add_bytes && i < bytes.size(); ++i)
    bytes[i] = static_cast<std::uint8_t>(bytes[i] + 1);
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
  std::memcpy(call->result, bytes.data(), bytes.size());
  call->result_len = call->payload_len;
  return CUDAQ_RPC_OK;
}

class BenchClient : public ::testing::Test {
protected:
  host_service &start(std::uint32_t slots, std::size_t payload_bytes) {
    ring_service_config c;
    c.num_slots = slots;
    c.slot_bytes = CUDAQ_RPC_HEADER_SIZE + static_cast<std::uint32_t>(payload_bytes);
    c.options = default_options();
    c.options.wait_policy = CUDAQ_WAIT_SPIN_YIELD;
    service_ = std::make_unique<host_service>(c, kFunction, &serve, behaviour_, nullptr);
    service_->start();
    return *service_;
  }
  static client_config client(std::uint64_t exchanges, std::size_t payload_bytes, reply_rule rule) {
    client_config c;
    c.exchanges = exchanges;
    c.warm_up = 32;
    c.payload_bytes = payload_bytes;
    c.function_id = kFunction;
    c.rule = rule;
    c.timeout_ns = kDeadlineNs;
    c.share_core = true;
    return c;
  }

  const std::shared_ptr<server_behaviour> behaviour_ = std::make_shared<server_behaviour>();
  std::unique_ptr<host_service> service_;
  const tick_scale scale_;
};

TEST_F(BenchClient, AcceptsRightRepliesOfEveryKindAndSize) {
  for (const reply_rule rule : {reply_rule::echo, reply_rule::add_words, reply_rule::add_bytes, reply_rule::last_word})
    for (const std::size_t bytes : {8u, 40u, 4096u}) {
      behaviour_->rule = rule;
      const loop_result r = exchange_one_by_one(start(7, bytes).ring(), 7, client(200, bytes, rule), scale_);
      EXPECT_EQ(r.wrong, 0u) << static_cast<int>(rule) << " " << bytes;
      EXPECT_EQ(r.exchanges, 200u);
      EXPECT_EQ(r.per_exchange.count(), 200u) << "warm-up is not measured";
      EXPECT_GT(r.wall_ns, 0u);
    }
}

TEST_F(BenchClient, CountsEveryWrongReply) {
  behaviour_->spoil_every = 10;
  EXPECT_EQ(exchange_one_by_one(start(4, 8).ring(), 4, client(168, 8, reply_rule::echo), scale_).wrong, 20u);
  behaviour_->spoil_every = 0;
  behaviour_->rule = reply_rule::echo;
  EXPECT_EQ(exchange_one_by_one(start(4, 8).ring(), 4, client(168, 8, reply_rule::add_bytes), scale_).wrong, 200u);
}

TEST_F(BenchClient, KeepsARingFullFromTwoThreads) {
  const loop_result r = exchange_full_ring(start(8, 8).ring(), 8, client(4000, 8, reply_rule::echo), scale_, {});
  EXPECT_EQ(r.wrong, 0u);
  EXPECT_EQ(r.per_exchange.count(), 4000u / 16) << "every 16th is timed";
  EXPECT_EQ(service_->stats().responded, 4032u);
}

TEST_F(BenchClient, SharesTheSlotsOutAmongThreads) {
  for (const std::uint32_t slots : {5u, 32u, 100u}) {
    const loop_result r =
        exchange_any_order(start(slots, 8).ring(), slots, client(3000, 8, reply_rule::echo), scale_, 3, {});
    EXPECT_EQ(r.wrong, 0u) << slots;
    EXPECT_GE(r.exchanges, 2998u) << slots;
    EXPECT_EQ(usable_threads(slots, 3), slots == 5 ? 1u : slots == 32 ? 2u : 3u);
  }
}

TEST_F(BenchClient, SaysWhenNoAnswerComes) {
  client_config c = client(100, 8, reply_rule::echo);
  c.timeout_ns = 50'000'000;
  const auto unserved = [this] {
    host_service &service = start(64, 8);
    service.stop();
    return service.ring();
  };
  EXPECT_THROW(exchange_one_by_one(unserved(), 64, c, scale_), exchange_stalled);
  EXPECT_THROW(exchange_counting_flags(unserved(), 64, c, scale_), exchange_stalled);
  EXPECT_THROW(exchange_full_ring(unserved(), 64, c, scale_, {}), exchange_stalled);
  EXPECT_THROW(exchange_any_order(unserved(), 64, c, scale_, 2, {}), exchange_stalled);
}

TEST_F(BenchClient, CountsFlagsUpAgainstAFloorThatClearsNone) {
  constexpr std::uint32_t kSlots = 4;
  host_service &service = start(kSlots, 8);
  service.stop(); // only its ring is used
  const cudaq_ringbuffer_t &ring = service.ring();
  std::atomic<bool> stop{false};
  const auto word = [](volatile std::uint64_t &flag) {
    return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t &>(flag));
  };
  std::thread floor([&] {
    std::uint64_t lap = 1;
    for (std::uint32_t slot = 0; !stop.load();) {
      if (word(ring.rx_flags_host[slot]).load() != lap) {
        std::this_thread::yield();
        continue;
      }
      std::memcpy(ring.tx_data_host + slot * ring.tx_stride_sz, ring.rx_data_host + slot * ring.rx_stride_sz, 32);
      const std::uint32_t head[2] = {CUDAQ_RPC_MAGIC_RESPONSE, 0};
      std::memcpy(ring.tx_data_host + slot * ring.tx_stride_sz, head, sizeof head);
      word(ring.tx_flags_host[slot]).store(lap);
      slot = (slot + 1) % kSlots;
      lap += slot == 0 ? 1 : 0;
    }
  });
  const loop_result r = exchange_counting_flags(ring, kSlots, client(200, 8, reply_rule::echo), scale_);
  stop.store(true);
  floor.join();
  EXPECT_EQ(r.wrong, 0u);
  EXPECT_EQ(r.per_exchange.count(), 200u);
}

} // namespace
} // namespace cudaq::realtime::tools
