// SPDX-License-Identifier: Apache-2.0
#include "cudaq/qec/utils/pipeline_benchmarks.h"
#include "cudaq/qec/utils/thread_pool.h"

#include <atomic>
#include <gtest/gtest.h>
#include <stdexcept>

namespace cudaq::qec::utils {
namespace {

TEST(ThreadPool, RunsEveryJobOnceBeforeItEndsAndSurvivesThrows) {
  std::atomic<int> ran{0};
  {
    ThreadPool pool(3);
    EXPECT_EQ(pool.size(), 3u);
    for (int i = 0; i < 1000; ++i)
      pool.enqueue([&ran, i] {
        ++ran;
        if (i % 10 == 0)
          throw std::runtime_error("dropped");
      });
  }
  EXPECT_EQ(ran, 1000);
}

TEST(ThreadPool, HasAThreadForEachCpuOfAList) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  int core = 0;
  while (!CPU_ISSET(core, &allowed))
    ++core;
  ThreadPool pool({core, core, -1});
  EXPECT_EQ(pool.size(), 3u);
  ThreadPool pinned(std::vector<int>{core});
  EXPECT_EQ(pinned.enqueue(sched_getcpu).get(), core);
}

TEST(ThreadPool, GivesAFutureWithTheResultOfAJobAndItsArguments) {
  ThreadPool pool(2);
  std::future<int> sum = pool.enqueue([](int a, int b) { return a + b; }, 20, 22);
  EXPECT_EQ(sum.get(), 42);
  int counted = 0;
  std::future<void> none = pool.enqueue([](int &count, std::unique_ptr<int> by) { count += *by; }, std::ref(counted),
                                        std::make_unique<int>(7));
  none.get();
  EXPECT_EQ(counted, 7);
  EXPECT_THROW(pool.enqueue([]() -> int { throw std::out_of_range("of the job"); }).get(), std::out_of_range);
}

TEST(ThreadPoolDeathTest, AJobThatEndsItsThreadEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(ThreadPool(1).enqueue([] { pthread_exit(nullptr); }).wait(), "");
}

TEST(ThreadPool, RefusesWhatCannotBe) {
  EXPECT_THROW(ThreadPool(0), std::invalid_argument);
  EXPECT_THROW(ThreadPool(std::vector<int>{}), std::invalid_argument);
  EXPECT_THROW(ThreadPool(std::vector<int>{-1, 1 << 20}), std::runtime_error);
}

TEST(PipelineBenchmark, CountsAndOrdersLatencies) {
  PipelineBenchmark bench("d7", 10);
  bench.start();
  for (std::size_t k = 0; k < 9; ++k)
    bench.mark_submit(k);
  for (std::size_t k = 0; k < 8; ++k)
    bench.mark_complete(k);
  bench.mark_complete(9);  // never submitted
  bench.mark_submit(1000); // not a submitted id
  bench.stop();
  const auto s = bench.compute_stats();
  EXPECT_EQ(s.submitted, 9u);
  EXPECT_EQ(s.completed, 8u);
  EXPECT_EQ(s.timed_out, 1u);
  EXPECT_GT(s.throughput_rps, 0);
  EXPECT_LE(s.min_us, s.p50_us);
  EXPECT_LE(s.p50_us, s.p999_us);
  EXPECT_LE(s.p999_us, s.max_us);
  EXPECT_NE(bench.report_text().find("completed 8"), std::string::npos);
}

} // namespace
} // namespace cudaq::qec::utils
