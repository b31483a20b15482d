// SPDX-License-Identifier: Apache-2.0
// White box: what the host looks at while nothing happens, and what a member's leaving costs, does not grow with the
// slots of the ring.
#include "cudaq/realtime/detail/ring/function_index_builder.h"
#include "lib/shared_ring/ring_router.h"
#include "unittests/host_dispatcher/traffic.h"
#include "unittests/support/ring_fixture.h"

namespace cudaq::realtime::test {
namespace {

using detail::job_phase;
using detail::job_table;
using detail::ring_router;

constexpr std::uint32_t kManySlots = 1u << 16;

/// A large ring in which a test sets flags.
class IdleCost : public ::testing::Test {
protected:
  IdleCost() { jobs->bind(slots.view); }

  /// Calls of resync_cursor until the cursor moves; 0: it did not move in `limit` calls.
  std::uint32_t calls_until_found(std::uint32_t budget, std::uint32_t limit = kManySlots) {
    for (std::uint32_t calls = 1; calls <= limit; ++calls)
      if (jobs->resync_cursor(budget))
        return calls;
    return 0;
  }

  guarded_slots slots{kManySlots, 32, 32, true};
  std::shared_ptr<job_table> jobs = std::make_shared<job_table>(kManySlots, 1);
};

// A call that looked at more slots than it may would find the request earlier.
// Known failure 52.
TEST_F(IdleCost, OneLookReadsABoundedNumberOfSlots) {
  for (const std::uint32_t slot : {1u, 127u, 128u, 129u, 5000u, kManySlots - 1}) {
    jobs->cursor.set(0);
    jobs->restart_resync();
    jobs->ring.signal(slot);
    const std::uint32_t looks = calls_until_found(128);
    EXPECT_GE(looks * 128 + 2 * looks, 2 * slot) << "slot " << slot; // two looks over the slots before it
    EXPECT_LE(looks, 2 * slot / 128 + 2) << "slot " << slot;
    EXPECT_EQ(jobs->cursor.peek(), slot);
    jobs->ring.release_rx(slot);
  }
}

TEST_F(IdleCost, FindsARequestThatComesWhileItLooks) {
  EXPECT_EQ(calls_until_found(128, 10), 0u); // the slots up to 1280 were empty
  jobs->ring.signal(700);
  const std::uint32_t lap = kManySlots / 128;
  const std::uint32_t looks = calls_until_found(128);
  EXPECT_EQ(jobs->cursor.peek(), 700u);
  EXPECT_GT(looks, 0u);
  EXPECT_LE(looks, lap + 700 * 2 / 128 + 3) << "not found in the lap after the one in which it came";
}

// The second look begins at the cursor, also if both looks take many calls.
TEST_F(IdleCost, ServesAnEarlierRequestThatComesBetweenTheLooks) {
  jobs->ring.signal(5000);
  EXPECT_EQ(calls_until_found(128, 40), 0u); // the first look has ended: 40 * 128 > 5000
  jobs->ring.signal(3000);
  EXPECT_GT(calls_until_found(128), 0u);
  EXPECT_EQ(jobs->cursor.peek(), 3000u);
}

TEST_F(IdleCost, BeginsAgainAfterTheCursorHasMoved) {
  jobs->ring.signal(5000);
  EXPECT_EQ(calls_until_found(128, 40), 0u);
  jobs->ring.release_rx(5000); // another request was served meanwhile, and this one with it: a lap
  jobs->restart_resync();
  EXPECT_EQ(calls_until_found(128, 2 * kManySlots / 128), 0u);
  EXPECT_EQ(jobs->cursor.peek(), 0u);
}

TEST_F(IdleCost, WaitsAtASlotInFlightHoweverFarAway) {
  jobs->ring.signal(4000);
  (*jobs)[3000].state.enter(job_phase::deferred);
  EXPECT_EQ(calls_until_found(128, 2 * kManySlots / 128), 0u);
  EXPECT_EQ(jobs->cursor.peek(), 0u);
  (*jobs)[3000].state.finish();
  EXPECT_GT(calls_until_found(128), 0u);
  EXPECT_EQ(jobs->cursor.peek(), 4000u);
}

/// A member that owns one function. It counts the questions about jobs that it was given.
class counting_member final : public detail::ring_member {
public:
  counting_member(job_table &jobs, std::uint32_t function_id) : jobs_(jobs) {
    cudaq_function_entry_t entry = host_entry("", reverse_handler);
    entry.function_id = function_id;
    (void)index_.build(&entry, 1);
    view_ = index_.view();
    rules_.served_modes = 1u << CUDAQ_DISPATCH_HOST_CALL;
  }
  const detail::function_index_view &index() const override { return view_; }
  const detail::judge_rules &rules() const override { return rules_; }
  bool is_default_owner() const override { return false; }
  void accept(std::uint32_t slot, const detail::request &, const detail::judgement &) override {
    jobs_[slot].owner.set(this);
    jobs_[slot].state.enter(job_phase::given);
    given = true;
  }
  bool has_answered(std::uint32_t) const override {
    ++questions;
    return false;
  }
  bool was_given_jobs() const override { return given; }
  detail::thread_counters &shared_counters() override { return counts_; }

  bool given = false;
  mutable std::uint32_t questions = 0;

private:
  job_table &jobs_;
  detail::function_index index_;
  detail::function_index_view view_;
  detail::judge_rules rules_;
  detail::thread_counters counts_{true};
};

void write_request(job_table &jobs, std::uint32_t slot, std::uint32_t function_id) {
  const cudaq_rpc_header_t header{CUDAQ_RPC_MAGIC_REQUEST, function_id, 0, slot, 0};
  std::memcpy(jobs.ring.rx_slot(slot), &header, sizeof(header));
  jobs.ring.signal(slot);
}

// An attach or a remove that walked the ring would look at each job that any member was given.
TEST_F(IdleCost, AMemberThatLeavesDoesNotLookAtTheJobsOfOthers) {
  ring_router router(jobs);
  counting_member busy(*jobs, 1), other(*jobs, 2);
  detail::thread_counters counts;
  ASSERT_TRUE(router.attach(busy).ok());
  for (std::uint32_t slot = 0; slot < 1000; ++slot)
    write_request(*jobs, slot, 1);
  while (router.route(32, busy, counts) != 0) {
  }
  busy.questions = 0;
  for (int n = 0; n < 10; ++n) {
    ASSERT_TRUE(router.attach(other).ok());
    router.begin_leaving(other);
    router.remove(other);
  }
  EXPECT_EQ(busy.questions, 0u);
}

TEST_F(IdleCost, ParkedRequestsAreHandedOutOldestFirst) {
  ring_router router(jobs);
  counting_member reader(*jobs, 1), late(*jobs, 2);
  detail::thread_counters counts;
  ASSERT_TRUE(router.attach(reader).ok());
  for (const std::uint32_t slot : {0u, 1u, 2u, 3u})
    write_request(*jobs, slot, slot == 1 || slot == 3 ? 2 : 1);
  EXPECT_EQ(router.route(32, reader, counts), 4u);
  EXPECT_EQ((*jobs)[1].state.phase(), job_phase::parked);
  ASSERT_TRUE(router.attach(late).ok());
  EXPECT_EQ((*jobs)[1].state.phase(), job_phase::given);
  EXPECT_EQ((*jobs)[3].state.phase(), job_phase::given);
  router.remove(late); // not answered: parked again
  EXPECT_EQ((*jobs)[1].state.phase(), job_phase::parked);
  EXPECT_EQ((*jobs)[3].state.phase(), job_phase::parked);
  late.given = false;
  ASSERT_TRUE(router.attach(late).ok());
  EXPECT_EQ((*jobs)[3].state.phase(), job_phase::given);
}

} // namespace
} // namespace cudaq::realtime::test
