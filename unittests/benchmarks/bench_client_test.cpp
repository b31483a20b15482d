// SPDX-License-Identifier: Apache-2.0
// The clients of `cudaq-realtime-bench device`, with a host dispatcher and with a hand-written floor. Needs no GPU.
#include "benchmarks/device/bench_client.h"
#include "unittests/tools/ring/ring_exchange_fixture.h"

#include <atomic>
#include <cstring>
#include <thread>

namespace cudaq::realtime::tools {
namespace {

using BenchClient = ring_exchange_test;

TEST_F(BenchClient, KeepsARingFullFromTwoThreads) {
  const loop_result r = exchange_full_ring(start(8, 8).ring(), 8, client(4000, 8, reply_rule::echo), scale_, {});
  EXPECT_EQ(r.wrong, 0u);
  EXPECT_EQ(r.per_exchange.count(), 4000u / 16) << "every 16th is timed";
  EXPECT_EQ(service_->stats().responded, 4032u);
}

TEST_F(BenchClient, SignalsSeveralRequestsOfAHandleTogether) {
  for (const bool two_threads : {true, false}) {
    const cudaq_ringbuffer_t &ring = start(8, 8).ring();
    cudaq_ringbuffer_producer_t *producer = nullptr;
    ASSERT_EQ(cudaq_ringbuffer_producer_open_ring(&ring, 8, CUDAQ_MEMORY_HOST, &producer), CUDAQ_OK);
    exchange_config c = client(4000, 8, reply_rule::echo);
    c.batch = 5;
    const ring_port port(ring, producer);
    const loop_result r =
        two_threads ? exchange_full_ring(port, 8, c, scale_, {}) : exchange_pipelined(port, 8, c, scale_);
    EXPECT_EQ(r.wrong, 0u);
    EXPECT_EQ(service_->stats().responded, two_threads ? 4032u : 4000u);
    EXPECT_EQ(cudaq_ringbuffer_producer_close(producer), CUDAQ_OK);
  }
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
  exchange_config c = client(100, 8, reply_rule::echo);
  c.timeout_ns = 50'000'000;
  EXPECT_THROW(exchange_counting_flags(unserved(64), 64, c, scale_), exchange_stalled);
  EXPECT_THROW(exchange_full_ring(unserved(64), 64, c, scale_, {}), exchange_stalled);
  EXPECT_THROW(exchange_any_order(unserved(64), 64, c, scale_, 2, {}), exchange_stalled);
}

TEST_F(BenchClient, CountsFlagsUpAgainstAFloorThatClearsNone) {
  constexpr std::uint32_t kSlots = 4;
  const cudaq_ringbuffer_t &ring = unserved(kSlots);
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
