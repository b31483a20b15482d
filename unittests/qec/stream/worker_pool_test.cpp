// SPDX-License-Identifier: Apache-2.0
// The pool alone: times, sleep and end. stream_workers_test.cpp has its users.
#include "lib/qec/stream/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <sys/resource.h>

namespace cudaq::qec::realtime::test {
namespace {

namespace base = cudaq::realtime::detail;
using namespace std::chrono_literals;
using clock = base::steady_clock;

bool soon_is(const std::function<bool()> &done) { return base::wait_until(clock::now() + 20s, done); }

std::int64_t ns_of(clock::time_point time) { return time.time_since_epoch().count(); }

struct client final : pool_client {
  bool work() noexcept override {
    ++begun;
    base::wait_until(clock::now() + 20s, [this] { return open.load(); });
    return pieces.fetch_sub(1) > 1;
  }
  void wake() noexcept override {
    woken_ns = ns_of(clock::now());
    ++wakes;
  }
  std::atomic<bool> open{true};
  std::atomic<int> pieces{1};
  std::atomic<int> begun{0}, wakes{0};
  std::atomic<std::int64_t> woken_ns{0};
};

void start(worker_pool &pool, std::size_t threads, cudaq_wait_policy_t wait = CUDAQ_WAIT_BLOCK) {
  ASSERT_EQ(pool.start("pool-test-", threads, wait, [] { return true; }).text(), "");
}

class WorkerPoolWaits : public testing::TestWithParam<cudaq_wait_policy_t> {};

TEST_P(WorkerPoolWaits, WakesOnceAtTheTimeThatAClientNamedLast) {
  client one, other;
  worker_pool pool(2);
  start(pool, 1, GetParam());
  const auto time = clock::now() + 20ms;
  pool.wake_at(other, ns_of(time + 1ms));
  pool.wake_at(one, ns_of(clock::now() + 1h));
  pool.wake_at(one, ns_of(time));
  pool.wake_at(other, ns_of(clock::now() + 1h));
  EXPECT_TRUE(soon_is([&] { return one.wakes == 1; }));
  EXPECT_GE(one.woken_ns, ns_of(time));
  pool.submit(one); // after that the thread has looked at the times again
  EXPECT_TRUE(soon_is([&] { return one.begun == 1; }));
  EXPECT_EQ(one.wakes, 1);
  EXPECT_EQ(other.wakes, 0);
}

TEST_P(WorkerPoolWaits, WakesAlsoWhileTheThreadThatHadTheTimeWorks) {
  for (int round = 0; round < 60; ++round) { // in some of them a thread that polls for the time gets the work
    client sleeper, later, quick, busy;
    worker_pool pool(2);
    if (round % 2 != 0) // the other thread sleeps until this time
      pool.wake_at(later, ns_of(clock::now() + 1h));
    start(pool, 2, GetParam());
    std::this_thread::sleep_for(1ms); // both may sleep
    busy.open = false;
    pool.submit(quick);
    while (quick.pieces != 0)
      base::cpu_relax();
    pool.wake_at(sleeper, ns_of(clock::now() + 3ms));
    pool.submit(busy);
    const bool woken = soon_is([&] { return sleeper.wakes == 1; });
    EXPECT_EQ(busy.pieces, 1) << "it still works";
    busy.open = true;
    ASSERT_TRUE(woken) << "round " << round;
  }
}

TEST_P(WorkerPoolWaits, EndsWhenItsListIsEmptyAndItMayEnd) {
  client last;
  last.open = false;
  last.pieces = 3;
  std::atomic<bool> may_end{false};
  worker_pool pool;
  ASSERT_EQ(pool.start("pool-test-", 2, GetParam(), [&] { return may_end.load(); }).text(), "");
  pool.submit(last);
  EXPECT_FALSE(pool.stop(clock::now()));
  last.open = true;
  EXPECT_TRUE(soon_is([&] { return last.pieces == 0; }));
  EXPECT_FALSE(pool.stop(clock::now() + 5ms));
  client late;
  pool.submit(late); // an answer that it waits for may need a thread
  EXPECT_TRUE(soon_is([&] { return late.begun == 1; }));
  may_end = true;
  EXPECT_TRUE(pool.stop(clock::now() + 20s));
}

INSTANTIATE_TEST_SUITE_P(Policies, WorkerPoolWaits,
                         testing::Values(CUDAQ_WAIT_SPIN, CUDAQ_WAIT_SPIN_YIELD, CUDAQ_WAIT_BLOCK), [](const auto &of) {
                           return std::string(of.param == CUDAQ_WAIT_SPIN         ? "Spin"
                                              : of.param == CUDAQ_WAIT_SPIN_YIELD ? "SpinYield"
                                                                                  : "Block");
                         });

TEST(WorkerPool, SleepsWithoutWorkAndIsWokenByIt) {
  client one;
  worker_pool pool(1);
  start(pool, 4);
  pool.wake_at(one, ns_of(clock::now() + 1h));
  std::this_thread::sleep_for(20ms); // they poll first
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  std::this_thread::sleep_for(200ms);
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LE(after.ru_nvcsw - before.ru_nvcsw, 100) << "sleeps: one every 50 us in a thread would be 4000";
  pool.submit(one);
  EXPECT_TRUE(soon_is([&] { return one.begun == 1; }));
}

TEST(WorkerPool, GivesEachClientAPieceBeforeAnyGetsTwo) {
  client first, second;
  first.pieces = second.pieces = 50;
  first.open = false;
  worker_pool pool;
  start(pool, 1);
  pool.submit(first);
  EXPECT_TRUE(soon_is([&] { return first.begun == 1; }));
  second.open = false;
  pool.submit(second);
  pool.submit(second); // it is listed already
  first.open = true;
  EXPECT_TRUE(soon_is([&] { return second.begun == 1; }));
  EXPECT_EQ(first.begun, 1);
  second.open = true;
  EXPECT_TRUE(soon_is([&] { return first.pieces == 0 && second.pieces == 0; }));
}

TEST(WorkerPool, AWithdrawnClientHasNoThreadAndGetsNone) {
  client one;
  one.pieces = 1'000'000'000;
  worker_pool pool;
  start(pool, 2);
  for (int round = 0; round < 50; ++round) {
    const int before = one.begun;
    pool.submit(one);
    EXPECT_TRUE(soon_is([&] { return one.begun > before; }));
    pool.withdraw(one);
    const int begun = one.begun;
    pool.submit(one);
    std::this_thread::sleep_for(100us);
    EXPECT_EQ(one.begun, begun);
    pool.readmit(one);
  }
  one.pieces = 0;
}

} // namespace
} // namespace cudaq::qec::realtime::test
