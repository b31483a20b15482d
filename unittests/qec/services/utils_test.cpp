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

TEST(ThreadPool, RefusesWhatCannotBe) {
  EXPECT_THROW(ThreadPool(0), std::invalid_argument);
  EXPECT_THROW(ThreadPool(2, 1 << 20), std::runtime_error);
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
