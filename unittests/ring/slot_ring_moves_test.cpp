// SPDX-License-Identifier: Apache-2.0
#include "cudaq/realtime/detail/base/shared_word.h"
#include "cudaq/realtime/detail/ring/slot_ring.h"
#include "unittests/support/host_fixture.h"
#include "unittests/support/ring_fixture.h"

namespace cudaq::realtime::test {
namespace {

using detail::load_acquire;
using detail::store_release;

TEST(FlagWord, RoundTripsEveryBit) {
  volatile std::uint64_t word = 0;
  for (const std::uint64_t value : {0ull, 1ull, 0x8000000000000000ull, ~0ull, 0xEEEEEEEEEEEEEEEEull}) {
    store_release(word, value);
    EXPECT_EQ(load_acquire(word), value);
    EXPECT_EQ(detail::load_relaxed(word), value);
  }
  volatile int flag = -1;
  EXPECT_EQ(load_acquire(flag), -1);
}

TEST(FlagWord, ClaimTakesAWordOnce) {
  detail::shared_word<std::uint32_t> word(3);
  EXPECT_FALSE(word.claim(2, 9));
  EXPECT_EQ(word.load(), 3u);
  EXPECT_TRUE(word.claim(3, 9));
  EXPECT_FALSE(word.claim(3, 9));
  EXPECT_EQ(word.load(), 9u);
}

TEST(FlagWord, ClaimIsGivenToOneOfManyThreads) {
  detail::shared_word<std::uint64_t> turn;
  detail::counter won, total;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (std::uint64_t n = 0; n < 20000; ++n) {
        total.add();
        if (turn.claim(n, n + 1))
          won.add();
      }
    });
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(won.value(), turn.load());
  EXPECT_EQ(total.value(), 60000u);
}

class SlotRing : public ::testing::TestWithParam<bool> {
protected:
  SlotRing() : slots(3, 40, 64, GetParam()), ring(slots.view) {}
  guarded_slots slots;
  detail::slot_ring ring;
};

TEST_P(SlotRing, SlotsStandAtTheirStrideAndTheCursorWraps) {
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ring.rx_slot(i), ring.rx_data + 64 * i);
    EXPECT_EQ(ring.tx_slot(i), ring.tx_data + 64 * i);
  }
  EXPECT_EQ(ring.in_place(), GetParam());
  EXPECT_EQ(ring.max_payload(), 16u);
  EXPECT_EQ(ring.next(0), 1u);
  EXPECT_EQ(ring.next(2), 0u);
  detail::slot_ring one = ring;
  one.num_slots = 1;
  EXPECT_EQ(one.next(0), 0u);
}

TEST_P(SlotRing, SlotIsFreeOnlyWhenBothFlagsAreZero) {
  EXPECT_TRUE(ring.free_for_producer(1));
  ring.signal(1);
  EXPECT_FALSE(ring.free_for_producer(1));
  ring.publish_tx(1);
  EXPECT_FALSE(ring.free_for_producer(1));
  ring.release_rx(1);
  EXPECT_FALSE(ring.free_for_producer(1)) << "the answer is not collected yet";
  ring.collect(1);
  EXPECT_TRUE(ring.free_for_producer(1));
  EXPECT_TRUE(ring.free_for_producer(0) && ring.free_for_producer(2));
}

TEST_P(SlotRing, FlagsCarryTheSlotsAddress) {
  ring.signal(2);
  EXPECT_EQ(ring.ready(2), reinterpret_cast<std::uint64_t>(ring.rx_slot(2)));
  EXPECT_TRUE(ring.collected(2));
  ring.mark_in_flight(2);
  EXPECT_EQ(ring.answer(2), CUDAQ_TX_FLAG_IN_FLIGHT);
  EXPECT_FALSE(ring.collected(2));
  ring.publish(2);
  EXPECT_EQ(ring.answer(2), reinterpret_cast<std::uint64_t>(ring.tx_slot(2)));
  EXPECT_EQ(ring.ready(2), 0u);
}

TEST_P(SlotRing, OwnAddressIsTheHostsOrTheOtherSides) {
  const auto host = reinterpret_cast<std::uint64_t>(ring.rx_slot(1));
  EXPECT_TRUE(ring.is_own_address(1, host));
  EXPECT_FALSE(ring.is_own_address(0, host));
  EXPECT_FALSE(ring.is_own_address(1, 64)) << "no alias is set";
  EXPECT_FALSE(ring.is_own_address(1, 0));
  ring.rx_alias = 0x700000000000ull;
  EXPECT_TRUE(ring.is_own_address(1, 0x700000000040ull));
  EXPECT_TRUE(ring.is_own_address(1, host));
  EXPECT_FALSE(ring.is_own_address(1, 0x700000000000ull));
}

// publish() clears rx after it has written the answer: a thread that reads rx as 0 also reads the answer.
TEST_P(SlotRing, WhoSeesTheRequestClearedSeesTheAnswer) {
  constexpr int kLaps = 20000;
  std::thread dispatcher([this] {
    for (int lap = 0; lap < kLaps; ++lap) {
      if (!eventually([&] { return ring.ready(0) != 0 && ring.collected(0); }))
        return;
      ring.publish(0);
    }
  });
  int early = 0;
  for (int lap = 0; lap < kLaps; ++lap) {
    ring.signal(0);
    if (!eventually([&] { return load_acquire(ring.rx_flags[0]) == 0; }))
      break;
    early += ring.answer(0) == 0;
    EXPECT_FALSE(ring.free_for_producer(0));
    ring.collect(0);
  }
  dispatcher.join();
  EXPECT_EQ(early, 0);
}

INSTANTIATE_TEST_SUITE_P(Placement, SlotRing, ::testing::Bool(),
                         [](const auto &tested) { return tested.param ? "InPlace" : "Separate"; });

} // namespace
} // namespace cudaq::realtime::test
