// SPDX-License-Identifier: Apache-2.0
// lib/ring/producer_core.h: which slots are free, the order of the signals, and threads that share one handle.
#include "lib/ring/producer_core.h"

#include "cudaq/realtime/detail/ring/frame.h"
#include "unittests/support/host_fixture.h"
#include "unittests/support/lap_ring.h"
#include "unittests/support/test_scale.h"

#include <atomic>

namespace cudaq::realtime::test {
namespace {

using detail::producer_core;

class RingProducer : public ::testing::TestWithParam<bool> {
protected:
  static bool ready(const lap_ring &ring, std::uint32_t slot) { return ring.view.ready(slot) != 0; }
};

TEST_P(RingProducer, ASlotIsFreeOnceItIsAnsweredGivenBackAndCollected) {
  lap_ring ring(2, 64, GetParam());
  producer_core producer(ring.view, 0);
  for (std::uint64_t lap = 0; lap < 3; ++lap)
    for (std::uint32_t expected = 0; expected < 2; ++expected) {
      std::uint32_t slot = 9;
      ASSERT_TRUE(producer.claim(slot)) << "lap " << lap;
      EXPECT_EQ(slot, expected);
      EXPECT_FALSE(ready(ring, slot)) << "signalled before commit";
      producer.commit(slot, 1);
      EXPECT_TRUE(ready(ring, slot));
      if (slot != 1)
        continue;
      EXPECT_FALSE(producer.claim(slot)) << "nothing is answered";
      for (std::uint32_t i = 0; i < 2; ++i) {
        ring.view.publish_tx(i);
        EXPECT_FALSE(producer.claim(slot)) << "answered, not given back";
        ring.view.give_back(i);
        EXPECT_FALSE(producer.claim(slot)) << "not collected";
      }
      ring.view.collect(0);
      ring.view.collect(1);
    }
  EXPECT_TRUE(producer.idle());
}

TEST_P(RingProducer, ADroppedRequestFreesItsSlot) {
  lap_ring ring(1, 64, GetParam());
  producer_core producer(ring.view, 0);
  for (int n = 0; n < 5; ++n) {
    std::uint32_t slot = 0;
    ASSERT_TRUE(producer.claim(slot)) << n;
    producer.commit(slot, 1);
    EXPECT_FALSE(producer.claim(slot));
    ring.view.give_back(0);
  }
}

// The lap of a request that was sent before the handle may still be on its way when its rx = 0 is seen.
TEST(RingProducerWithLaps, ALateLapOfAnEarlierRequestIsNotTakenForItsOwn) {
  lap_ring ring(1, 64, true);
  ring.view.rx_flags[1] = 1; // the count of the device; the lap is still 0
  producer_core producer(ring.view, 0);
  std::uint32_t slot = 0;
  EXPECT_FALSE(producer.claim(slot));
  ring.view.tx_flags[1] = 1; // it arrives
  ASSERT_TRUE(producer.claim(slot));
  producer.commit(slot, 1);
  EXPECT_FALSE(producer.claim(slot));
  ring.view.publish_tx(0);
  ring.view.give_back(0);
  ring.view.collect(0);
  EXPECT_TRUE(producer.claim(slot));
}

// A load of rx, or of the device's count, would cross the bus.
TEST(RingProducerWithLaps, AfterTheFirstLapNothingIsReadFromTheDevice) {
  lap_ring ring(2, 64, true);
  producer_core producer(ring.view, 0);
  for (std::uint64_t lap = 0; lap < 4; ++lap)
    for (std::uint32_t expected = 0; expected < 2; ++expected) {
      volatile std::uint64_t &rx = ring.view.rx_flags[expected];
      volatile std::uint64_t &count = ring.view.rx_flags[expected + ring.view.lap_offset];
      const std::uint64_t posted = count;
      EXPECT_EQ(posted, lap);
      if (lap != 0) { // what a load would find
        rx = 0xBAD;
        count = 0xBAD;
      }
      std::uint32_t slot = 9;
      ASSERT_TRUE(producer.claim(slot)) << "lap " << lap;
      EXPECT_EQ(slot, expected);
      count = posted;
      producer.commit(slot, 1);
      ring.view.publish_tx(slot);
      ring.view.give_back(slot);
      ring.view.collect(slot);
    }
}

TEST_P(RingProducer, SignalsInTheOrderOfTheClaims) {
  lap_ring ring(4, 64, GetParam());
  producer_core producer(ring.view, 3);
  std::uint32_t first = 0, count = 0;
  producer.claim(9, first, count);
  EXPECT_EQ(first, 3u);
  EXPECT_EQ(count, 4u) << "no more than the ring has";
  std::uint32_t more = 9;
  EXPECT_FALSE(producer.claim(more)) << "both flags of a claimed slot are 0 until its signal";
  producer.commit(1, 1);
  EXPECT_FALSE(ready(ring, 1)) << "slots 3 and 0 come first";
  producer.commit(3, 1);
  EXPECT_TRUE(ready(ring, 3));
  EXPECT_FALSE(ready(ring, 0) || ready(ring, 1) || ready(ring, 2));
  EXPECT_FALSE(producer.idle());
  producer.commit(0, 1);
  EXPECT_TRUE(ready(ring, 0) && ready(ring, 1));
  EXPECT_FALSE(ready(ring, 2));
  producer.commit(2, 1);
  EXPECT_TRUE(ready(ring, 2));
  EXPECT_TRUE(producer.idle());
}

TEST_P(RingProducer, ABatchIsSignalledAtOnceAcrossTheEndOfTheRing) {
  lap_ring ring(4, 64, GetParam());
  producer_core producer(ring.view, 2);
  std::uint32_t first = 0, count = 0;
  producer.claim(3, first, count);
  ASSERT_EQ(count, 3u);
  producer.commit(first, count);
  for (const std::uint32_t slot : {2u, 3u, 0u})
    EXPECT_TRUE(ready(ring, slot)) << slot;
  EXPECT_FALSE(ready(ring, 1));
  EXPECT_EQ(producer.next_slot(), 1u);
}

/// A request through one slot takes a turn of three threads, milliseconds each if other programs have the cores.
constexpr std::chrono::seconds kLongEnough{4};
/// One thread may send all its requests before the other one gets a slot.
constexpr std::chrono::seconds kMaxWait = 4 * kLongEnough;

/// Threads that share a handle, and a dispatcher that answers, or drops every fifth request. No request is sent after
/// kLongEnough.
void share_one_handle(std::uint32_t slots, bool with_laps, std::uint32_t threads) {
  const std::uint32_t each = load_size(20000);
  lap_ring ring(slots, 64, with_laps);
  producer_core producer(ring.view, 0);
  std::atomic<std::uint64_t> sum{0}, sent{0}, sum_sent{0};
  std::atomic<bool> all_sent{false};
  std::uint64_t served = 0;
  std::thread dispatcher([&] {
    for (std::uint32_t slot = 0;; ++served, slot = ring.view.next(slot)) {
      const auto request_here = [&] { return ring.view.ready(slot) != 0 && ring.view.collected(slot); };
      const auto ended = [&] { return all_sent.load() && served == sent.load(); };
      if (!eventually([&] { return request_here() || ended(); }, kMaxWait) || !request_here())
        return; // then a request is missing, unless all were served
      const auto request = detail::read_header<detail::request>(ring.view.rx_slot(slot));
      sum += request.request_id;
      if (served % 5 == 0) {
        ring.view.give_back(slot);
        continue;
      }
      ring.view.publish_tx(slot);
      ring.view.give_back(slot);
      ring.view.collect(slot); // the consumer's part
    }
  });
  const auto end = std::chrono::steady_clock::now() + kLongEnough;
  std::vector<std::thread> producers;
  for (std::uint32_t t = 0; t < threads; ++t)
    producers.emplace_back([&, t] {
      for (std::uint32_t n = 0; n < each && std::chrono::steady_clock::now() < end; ++n) {
        std::uint32_t slot = 0;
        if (!eventually([&] { return producer.claim(slot); }, kMaxWait))
          return ADD_FAILURE() << "no slot became free after " << n << " requests";
        detail::write_request(producer.frame(slot), {1, 2, 0, t * each + n, 0});
        sum_sent += t * each + n;
        ++sent;
        producer.commit(slot, 1);
      }
    });
  for (std::thread &p : producers)
    p.join();
  all_sent = true;
  dispatcher.join();
  EXPECT_GE(served, threads);
  EXPECT_EQ(served, sent);
  EXPECT_EQ(sum, sum_sent) << "a request was lost or doubled";
  EXPECT_TRUE(producer.idle());
}

TEST_P(RingProducer, ThreadsShareOneHandle) {
  for (const std::uint32_t slots : {1u, 2u, 3u, 64u}) {
    SCOPED_TRACE(slots);
    share_one_handle(slots, GetParam(), 2);
  }
  share_one_handle(8, GetParam(), 3);
}

INSTANTIATE_TEST_SUITE_P(Laps, RingProducer, ::testing::Bool(),
                         [](const auto &tested) { return tested.param ? "With" : "Without"; });

} // namespace
} // namespace cudaq::realtime::test
