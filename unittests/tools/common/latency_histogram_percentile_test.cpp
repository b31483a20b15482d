// SPDX-License-Identifier: Apache-2.0
#include "tools/common/latency_histogram.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <sstream>

namespace cudaq::realtime::tools {
namespace {

/// The smallest of the sorted values such that at least `percent` of the values are not larger.
std::uint64_t order_statistic(const std::vector<std::uint64_t> &sorted, double percent) {
  const double exact = percent / 100.0 * static_cast<double>(sorted.size());
  const auto rank = static_cast<std::size_t>(std::ceil(exact * (1.0 - 1e-12)));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

void expect_within_a_bucket(std::vector<std::uint64_t> values) {
  latency_histogram h;
  for (const std::uint64_t v : values)
    h.record(v);
  std::ranges::sort(values);
  for (const double percent : {0.0, 0.1, 1.0, 25.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0}) {
    const auto truth = static_cast<double>(order_statistic(values, percent));
    const auto reported = static_cast<double>(h.percentile(percent));
    EXPECT_GE(reported, truth) << percent;
    EXPECT_LE(reported, truth * (1.0 + latency_histogram::kRelativeError)) << percent;
  }
  EXPECT_EQ(h.min(), values.front());
  EXPECT_EQ(h.max(), values.back());
  EXPECT_EQ(h.count(), values.size());
}

TEST(LatencyHistogram, PercentilesStayWithinTheStatedErrorOfSortedValues) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> tail(8.0, 1.5);
  std::uniform_int_distribution<std::uint64_t> flat(0, 5000);
  std::vector<std::uint64_t> a, b;
  for (int i = 0; i < 100000; ++i) {
    a.push_back(static_cast<std::uint64_t>(tail(random)));
    b.push_back(flat(random));
  }
  expect_within_a_bucket(a);
  expect_within_a_bucket(b);
  expect_within_a_bucket({17});
  expect_within_a_bucket({1, 1, 1, 1'000'000'000});
}

TEST(LatencyHistogram, ReportsSmallValuesExactly) {
  latency_histogram h;
  for (std::uint64_t v = 1; v <= 200; ++v)
    h.record(v);
  for (const unsigned percent : {1u, 10u, 50u, 99u, 100u})
    EXPECT_EQ(h.percentile(percent), 2u * percent);
}

TEST(LatencyHistogram, GivesRank999Of1000At99Point9Percent) {
  latency_histogram h;
  for (int i = 0; i < 999; ++i)
    h.record(10);
  h.record(250);
  EXPECT_EQ(h.percentile(99.9), 10u);
  EXPECT_EQ(h.percentile(99.95), 250u);
}

TEST(LatencyHistogram, CutsBucketsWithoutGapOrOverlap) {
  const std::size_t last = latency_histogram::index_of(latency_histogram::kLargest);
  for (std::size_t i = 0; i <= last; ++i) {
    ASSERT_EQ(latency_histogram::index_of(latency_histogram::lower_of(i)), i);
    ASSERT_EQ(latency_histogram::index_of(latency_histogram::upper_of(i)), i);
    ASSERT_EQ(latency_histogram::upper_of(i) + 1, latency_histogram::lower_of(i + 1));
  }
}

TEST(LatencyHistogram, MergesToTheSameAsRecordingTogether) {
  latency_histogram a, b, both;
  for (std::uint64_t v = 0; v < 3000; ++v) {
    (v % 3 == 0 ? a : b).record(v * 7);
    both.record(v * 7);
  }
  a.merge(b);
  EXPECT_EQ(a.count(), both.count());
  EXPECT_EQ(a.min(), both.min());
  EXPECT_EQ(a.max(), both.max());
  EXPECT_DOUBLE_EQ(a.mean(), both.mean());
  for (const double percent : {1.0, 50.0, 99.0})
    EXPECT_EQ(a.percentile(percent), both.percentile(percent));
}

TEST(LatencyHistogram, CountsValuesBeyondItsRangeInTheLastBucket) {
  latency_histogram h;
  h.record(UINT64_MAX / 2);
  EXPECT_EQ(h.count(), 1u);
  EXPECT_EQ(h.max(), UINT64_MAX / 2);
  EXPECT_EQ(h.percentile(50), UINT64_MAX / 2);
}

TEST(LatencyHistogram, AnswersZeroWhenEmpty) {
  const latency_histogram h;
  EXPECT_EQ(h.percentile(50), 0u);
  EXPECT_EQ(h.min(), 0u);
  EXPECT_EQ(h.max(), 0u);
  EXPECT_EQ(h.mean(), 0.0);
}

TEST(LatencyHistogram, WritesHgrmThatEndsAtFractionOne) {
  latency_histogram h;
  for (std::uint64_t v = 1; v <= 100; ++v)
    h.record(v * 1000);
  std::ostringstream out;
  h.write_hgrm(out, 1000.0);
  const std::string text = out.str();
  EXPECT_EQ(text.find("       Value     Percentile TotalCount 1/(1-Percentile)"), 0u);
  EXPECT_NE(text.find("100.000 1.000000000000        100\n"), std::string::npos) << text;
  EXPECT_NE(text.find("Total count = 100]"), std::string::npos);
}

} // namespace
} // namespace cudaq::realtime::tools
