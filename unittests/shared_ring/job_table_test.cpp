// SPDX-License-Identifier: Apache-2.0
// White box: the lock-free parts of the dispatcher without a dispatcher.
#include "lib/host_dispatcher/work_queues.h"
#include "lib/shared_ring/job_table.h"
#include "unittests/host_dispatcher/traffic.h"

namespace cudaq::realtime::test {
namespace {

using detail::ring_ledger;
using detail::slot_phase;
using detail::slot_state;
using detail::work_queues;

TEST(SlotState, IsClaimedByExactlyOneOfManyThreads) {
  slot_state state;
  state.start_at(5);
  const std::uint64_t rounds = fewer_if_sanitized(20000);
  std::atomic<std::uint64_t> won{0}, stale_won{0}, round{0}, done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (std::uint64_t r = 1; r <= rounds; ++r) {
        if (!eventually([&] { return round.load() >= r; }))
          return;
        stale_won += r > 1 && state.claim(5 + r - 2, slot_phase::deferred, slot_phase::completing);
        won += state.claim(5 + r - 1, slot_phase::deferred, slot_phase::completing);
        ++done;
      }
    });
  for (std::uint64_t r = 1; r <= rounds; ++r) {
    state.enter(slot_phase::deferred);
    round.store(r);
    ASSERT_TRUE(eventually([&] { return done.load() == 3 * r; }));
    ASSERT_EQ(state.phase(), slot_phase::completing);
    state.finish();
    ASSERT_EQ(state.phase(), slot_phase::open);
  }
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(won.load(), rounds);
  EXPECT_EQ(stale_won.load(), 0u);
}

/// One pusher, several poppers, as many slots in the queues at a time as there are.
void push_and_pop(bool exclusive, std::uint32_t queues, std::uint32_t slots, int poppers) {
  work_queues work;
  work.reset(queues, slots, exclusive);
  const std::uint32_t total = fewer_if_sanitized(200000);
  std::vector<std::atomic<std::uint32_t>> ticket(slots), inside(queues), last(queues);
  std::vector<std::atomic<std::uint8_t>> held(slots);
  std::atomic<std::uint32_t> popped{0}, disorder{0}, crowd{0}, foreign{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < poppers; ++t)
    threads.emplace_back([&, t] {
      eventually([&] {
        work_queues::item item;
        while (work.pop(static_cast<std::uint32_t>(t) % queues, item)) {
          crowd += exclusive && inside[item.queue].fetch_add(1) != 0;
          const std::uint32_t number = ticket[item.slot].load();
          foreign += number % queues != item.queue;
          disorder += exclusive && last[item.queue].exchange(number) > number;
          inside[item.queue].fetch_sub(exclusive);
          foreign += held[item.slot].exchange(0) != 1;
          ++popped;
          work.done(item);
        }
        return popped.load() >= total;
      });
    });
  std::uint32_t slot = 0;
  for (std::uint32_t n = 0; n < total; ++n, slot = (slot + 1) % slots) {
    ASSERT_TRUE(eventually([&] { return held[slot].load() == 0; }));
    held[slot].store(1);
    ticket[slot].store(n);
    work.push(n % queues, slot);
  }
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(popped.load(), total);
  EXPECT_EQ(disorder.load(), 0u);
  EXPECT_EQ(crowd.load(), 0u);
  EXPECT_EQ(foreign.load(), 0u) << "popped twice, or from another queue";
  EXPECT_TRUE(work.empty());
}

TEST(WorkQueues, HandEachItemToOneThread) { push_and_pop(false, 1, 16, 3); }
TEST(WorkQueues, HandEachItemToOneThreadWithOneSlot) { push_and_pop(false, 1, 1, 3); }
TEST(WorkQueues, KeepTheOrderOfEachQueueAndOneThreadInIt) { push_and_pop(true, 5, 7, 3); }

class Ledger : public ::testing::Test {
protected:
  static constexpr std::uint32_t kSlots = 6;
  Ledger() : ledger(kSlots, 1) {
    detail::slot_ring ring;
    ring.rx_flags = rx;
    ring.tx_flags = tx;
    ring.rx_data = ring.tx_data = data;
    ring.rx_stride = ring.tx_stride = 32;
    ring.num_slots = kSlots;
    ring.slot_size = 32;
    ledger.bind(ring);
  }
  void fill(std::uint32_t slot) { ledger.ring.signal(slot); }

  volatile std::uint64_t rx[kSlots] = {}, tx[kSlots] = {};
  alignas(8) std::uint8_t data[32 * kSlots] = {};
  ring_ledger ledger;
};

TEST_F(Ledger, StaysOnAnEmptyRingAndOnAReadySlot) {
  EXPECT_FALSE(ledger.resync_cursor());
  fill(0);
  fill(3);
  EXPECT_FALSE(ledger.resync_cursor());
  EXPECT_EQ(ledger.cursor.peek(), 0u);
}

TEST_F(Ledger, MovesToTheFirstReadySlotBehindTheCursor) {
  ledger.cursor.set(4);
  fill(1);
  fill(3);
  EXPECT_TRUE(ledger.resync_cursor());
  EXPECT_EQ(ledger.cursor.peek(), 1u);
}

TEST_F(Ledger, DoesNotPassASlotInFlight) {
  fill(2);
  ledger.slots[2].state.enter(slot_phase::deferred);
  ledger.ring.release_rx(2); // markers on
  fill(4);
  EXPECT_FALSE(ledger.resync_cursor());
  EXPECT_EQ(ledger.cursor.peek(), 0u);
  EXPECT_TRUE(ledger.slots[2].state.claim(1, slot_phase::deferred, slot_phase::completing));
  EXPECT_FALSE(ledger.resync_cursor());
  ledger.slots[2].state.finish();
  EXPECT_TRUE(ledger.resync_cursor());
  EXPECT_EQ(ledger.cursor.peek(), 4u);
}

TEST_F(Ledger, DoesNotTakeAnAnsweredSlotForARequest) {
  fill(2);
  ledger.slots[2].state.enter(slot_phase::deferred);
  ledger.ring.publish_tx(2); // rx is still set
  EXPECT_FALSE(ledger.untaken(2));
  EXPECT_FALSE(ledger.resync_cursor());
}

TEST_F(Ledger, PassesASlotThatBelongsToNobody) {
  fill(0);
  ledger.slots[0].state.enter(slot_phase::parked);
  fill(2);
  EXPECT_TRUE(ledger.resync_cursor());
  EXPECT_EQ(ledger.cursor.peek(), 2u);
}

// The rule in motion: a ring-order producer and a reader that looks over the ring at every opportunity.
TEST_F(Ledger, KeepsTheOrderOfARingOrderProducerHoweverOftenItLooksOverTheRing) {
  const std::uint32_t total = fewer_if_sanitized(300000);
  std::thread producer([&] {
    for (std::uint32_t n = 0, slot = 0; n < total; ++n, slot = (slot + 1) % kSlots) {
      if (!eventually([&] { return ledger.ring.free_for_producer(slot); }))
        return;
      std::memcpy(ledger.ring.rx_slot(slot), &n, 4);
      fill(slot);
    }
  });
  std::uint32_t expected = 0;
  std::uint64_t jumps = 0;
  EXPECT_TRUE(eventually([&] {
    jumps += ledger.resync_cursor();
    const std::uint32_t slot = ledger.cursor.peek();
    if (ledger.untaken(slot)) {
      std::uint32_t n = 0;
      std::memcpy(&n, ledger.ring.rx_slot(slot), 4);
      EXPECT_EQ(n, expected);
      ++expected;
      ledger.ring.release_rx(slot);
      ledger.cursor.set(ledger.ring.next(slot));
    }
    return expected == total || HasFailure();
  }));
  producer.join();
  EXPECT_EQ(jumps, 0u);
}

} // namespace
} // namespace cudaq::realtime::test
