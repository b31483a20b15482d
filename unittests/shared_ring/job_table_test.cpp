// SPDX-License-Identifier: Apache-2.0
// White box: the job table without a dispatcher.
#include "lib/shared_ring/job_table.h"
#include "unittests/host_dispatcher/traffic.h"

namespace cudaq::realtime::test {
namespace {

using detail::job_phase;
using detail::job_state;
using detail::job_table;

TEST(JobState, IsClaimedByExactlyOneOfManyThreads) {
  job_state state;
  state.start_at(5);
  const std::uint64_t rounds = load_size(20000);
  std::atomic<std::uint64_t> won{0}, stale_won{0}, round{0}, done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (std::uint64_t r = 1; r <= rounds; ++r) {
        if (!eventually([&] { return round.load() >= r; }))
          return;
        stale_won += r > 1 && state.claim(5 + r - 2, job_phase::deferred, job_phase::completing);
        won += state.claim(5 + r - 1, job_phase::deferred, job_phase::completing);
        ++done;
      }
    });
  for (std::uint64_t r = 1; r <= rounds; ++r) {
    state.enter(job_phase::deferred);
    round.store(r);
    ASSERT_TRUE(eventually([&] { return done.load() == 3 * r; }));
    ASSERT_EQ(state.phase(), job_phase::completing);
    state.finish();
    ASSERT_EQ(state.phase(), job_phase::open);
  }
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(won.load(), rounds);
  EXPECT_EQ(stale_won.load(), 0u);
}

class JobTable : public ::testing::Test {
protected:
  static constexpr std::uint32_t kSlots = 6;
  JobTable() : jobs(kSlots, 1) {
    detail::slot_ring ring;
    ring.rx_flags = rx;
    ring.tx_flags = tx;
    ring.rx_data = ring.tx_data = data;
    ring.rx_stride = ring.tx_stride = 32;
    ring.num_slots = kSlots;
    ring.slot_size = 32;
    jobs.bind(ring);
  }
  void fill(std::uint32_t slot) { jobs.ring.signal(slot); }

  volatile std::uint64_t rx[kSlots] = {}, tx[kSlots] = {};
  alignas(8) std::uint8_t data[32 * kSlots] = {};
  job_table jobs;
};

TEST_F(JobTable, StaysOnAnEmptyRingAndOnAReadySlot) {
  EXPECT_FALSE(jobs.resync_cursor(job_table::kResyncSlots));
  fill(0);
  fill(3);
  EXPECT_FALSE(jobs.resync_cursor(job_table::kResyncSlots));
  EXPECT_EQ(jobs.cursor.peek(), 0u);
}

TEST_F(JobTable, MovesToTheFirstReadySlotAfterTheCursor) {
  jobs.cursor.set(4);
  fill(1);
  fill(3);
  EXPECT_TRUE(jobs.resync_cursor(job_table::kResyncSlots));
  EXPECT_EQ(jobs.cursor.peek(), 1u);
}

TEST_F(JobTable, DoesNotPassASlotInFlight) {
  fill(2);
  jobs[2].state.enter(job_phase::deferred);
  jobs.ring.release_rx(2); // as with markers
  fill(4);
  EXPECT_FALSE(jobs.resync_cursor(job_table::kResyncSlots));
  EXPECT_EQ(jobs.cursor.peek(), 0u);
  EXPECT_TRUE(jobs[2].state.claim(1, job_phase::deferred, job_phase::completing));
  EXPECT_FALSE(jobs.resync_cursor(job_table::kResyncSlots));
  jobs[2].state.finish();
  EXPECT_TRUE(jobs.resync_cursor(job_table::kResyncSlots));
  EXPECT_EQ(jobs.cursor.peek(), 4u);
}

TEST_F(JobTable, DoesNotTakeAnAnsweredSlotForARequest) {
  fill(2);
  jobs[2].state.enter(job_phase::deferred);
  jobs.ring.publish_tx(2); // rx is still set
  EXPECT_FALSE(jobs.untaken(2));
  EXPECT_FALSE(jobs.resync_cursor(job_table::kResyncSlots));
}

TEST_F(JobTable, PassesASlotWithoutAnOwner) {
  fill(0);
  jobs[0].state.enter(job_phase::parked);
  fill(2);
  EXPECT_TRUE(jobs.resync_cursor(job_table::kResyncSlots));
  EXPECT_EQ(jobs.cursor.peek(), 2u);
}

// A producer fills in ring order while a reader checks the whole ring at every opportunity.
TEST_F(JobTable, KeepsTheOrderOfARingOrderProducerHoweverOftenItLooksOverTheRing) {
  const std::uint32_t total = load_size(300000);
  std::thread producer([&] {
    for (std::uint32_t n = 0, slot = 0; n < total; ++n, slot = (slot + 1) % kSlots) {
      if (!eventually([&] { return jobs.ring.free_for_producer(slot); }))
        return;
      std::memcpy(jobs.ring.rx_slot(slot), &n, 4);
      fill(slot);
    }
  });
  std::uint32_t expected = 0;
  std::uint64_t jumps = 0;
  const auto next_is_here = [&] {
    jumps += jobs.resync_cursor(job_table::kResyncSlots);
    return jobs.untaken(jobs.cursor.peek());
  };
  while (expected < total && !HasFailure() && eventually(next_is_here)) {
    const std::uint32_t slot = jobs.cursor.peek();
    std::uint32_t n = 0;
    std::memcpy(&n, jobs.ring.rx_slot(slot), 4);
    EXPECT_EQ(n, expected);
    ++expected;
    jobs.ring.release_rx(slot);
    jobs.cursor.set(jobs.ring.next(slot));
  }
  producer.join();
  EXPECT_EQ(expected, total);
  EXPECT_EQ(jumps, 0u);
}

} // namespace
} // namespace cudaq::realtime::test
