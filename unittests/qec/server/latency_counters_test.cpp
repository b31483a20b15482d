// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/decoder/latency_counters.h"

#include <gtest/gtest.h>
#include <numeric>
#include <thread>
#include <vector>

namespace cudaq::qec::realtime::test {
namespace {

TEST(LatencyCounters, EveryDurationIsInTheBucketOfItsBound) {
  for (std::size_t k = 0; k < latency_counters::kBounds; ++k) {
    const std::uint64_t bound = latency_counters::bound_ns(k);
    EXPECT_EQ(latency_counters::bucket_of(bound), k);
    EXPECT_EQ(latency_counters::bucket_of(bound + 1), k + 1);
    if (k > 0) {
      EXPECT_GT(bound, latency_counters::bound_ns(k - 1));
      EXPECT_LE(bound, latency_counters::bound_ns(k - 1) * 5 / 4) << "at most 25 % more";
    }
  }
  EXPECT_EQ(latency_counters::bucket_of(0), 0u);
  EXPECT_EQ(latency_counters::bucket_of(UINT64_MAX), latency_counters::kBounds);
  EXPECT_EQ(latency_counters::bound_ns(0), 256u);
  EXPECT_GT(latency_counters::bound_ns(latency_counters::kBounds - 1), 8'000'000'000u);
}

TEST(LatencyCounters, CountsOfThreadsAreNotLost) {
  latency_counters counters;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 3; ++t)
    threads.emplace_back([&counters, t] {
      for (std::uint64_t k = 0; k < 2000; ++k)
        counters.record(300 + 1000 * t);
    });
  for (std::thread &t : threads)
    t.join();
  const latency_counters::counts now = counters.read();
  EXPECT_EQ(std::accumulate(now.buckets.begin(), now.buckets.end(), std::uint64_t{0}), 6000u);
  EXPECT_EQ(now.buckets[latency_counters::bucket_of(300)], 2000u);
  EXPECT_EQ(now.buckets[latency_counters::bucket_of(2300)], 2000u);
  EXPECT_EQ(now.sum_ns, 2000u * (300 + 1300 + 2300));
}

} // namespace
} // namespace cudaq::qec::realtime::test
