// SPDX-License-Identifier: Apache-2.0
#include "lib/base/ticks.h"
#include "lib/base/time_histogram.h"

#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace cudaq::realtime::detail {
namespace {

using buckets = time_histogram::buckets;

TEST(TimeHistogram, HasBucketsThatFollowEachOtherAndAreNarrow) {
  for (std::size_t i = 0; i < time_histogram::kBuckets; ++i) {
    const std::uint64_t first = buckets::lower_of(i), last = buckets::upper_of(i);
    EXPECT_EQ(buckets::index_of(first), i);
    EXPECT_EQ(buckets::index_of(last), i);
    EXPECT_EQ(buckets::index_of(last + 1), i + 1);
    EXPECT_LE((last - first) * 32, first) << i;
  }
}

TEST(TimeHistogram, ReportsPercentilesOfItsBucketsAndTheExactMaximum) {
  time_histogram h;
  for (std::uint64_t ns = 1; ns <= 1000; ++ns)
    h.record(ns * 1000);
  time_histogram::snapshot seen;
  EXPECT_EQ(seen.percentile(50), 0u);
  seen.add(h);
  EXPECT_EQ(seen.count, 1000u);
  EXPECT_EQ(seen.sum_ns, 500'500'000u);
  EXPECT_EQ(seen.max_ns, 1'000'000u);
  for (const double percent : {1.0, 50.0, 99.0, 99.9, 100.0}) {
    const double exact = percent * 10'000;
    EXPECT_GE(static_cast<double>(seen.percentile(percent)), exact) << percent;
    EXPECT_LE(static_cast<double>(seen.percentile(percent)), exact * (1 + 1.0 / 32)) << percent;
  }
  EXPECT_EQ(seen.percentile(100), 1'000'000u);
}

TEST(TimeHistogram, KeepsTimesThatAreTooLongInItsLastBucket) {
  time_histogram h;
  h.record(UINT64_MAX / 2);
  time_histogram::snapshot seen;
  seen.add(h);
  EXPECT_EQ(seen.counts.back(), 1u);
  EXPECT_EQ(seen.max_ns, UINT64_MAX / 2);
}

TEST(TimeHistogram, LosesNothingOfSeveralWritersThatSayThatTheyAre) {
  constexpr std::uint64_t kEach = 20'000;
  time_histogram h;
  std::vector<std::thread> writers;
  for (std::uint64_t w = 0; w < 3; ++w)
    writers.emplace_back([&h, w] {
      for (std::uint64_t i = 0; i < kEach; ++i)
        h.record(100 + w, true);
    });
  for (std::thread &t : writers)
    t.join();
  time_histogram::snapshot seen;
  seen.add(h);
  EXPECT_EQ(seen.count, 3 * kEach);
  EXPECT_EQ(seen.sum_ns, kEach * (100 + 101 + 102));
  EXPECT_EQ(seen.max_ns, 102u);
}

TEST(TickClock, CountsNanosecondsAsSteadyClockDoes) {
  const tick_clock clock = tick_clock::measured();
  const std::uint64_t outer = steady_ns(), begin = clock.now(), inner = steady_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::uint64_t inner_ns = steady_ns() - inner, end = clock.now(), outer_ns = steady_ns() - outer;
  const auto ns = static_cast<double>(clock.ns_between(begin, end));
  EXPECT_GE(ns, static_cast<double>(inner_ns) * 0.99);
  EXPECT_LE(ns, static_cast<double>(outer_ns) * 1.01);
  EXPECT_EQ(clock.ns_between(end, begin), 0u);
}

} // namespace
} // namespace cudaq::realtime::detail
