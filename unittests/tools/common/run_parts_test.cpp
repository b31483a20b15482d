// SPDX-License-Identifier: Apache-2.0
// What long runs keep and print: percentiles, timelines, progress, pace, and signals.
#include "tools/common/interrupt.h"
#include "tools/common/latency_histogram.h"
#include "tools/common/run_timeline.h"
#include "tools/common/sending_pace.h"
#include "tools/common/terminal.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <sstream>
#include <thread>

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

std::uint64_t all_counts(const run_timeline &t) {
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < t.size(); ++i)
    n += t[i].count;
  return n;
}

TEST(RunTimeline, IsEmptyAtFirst) { EXPECT_EQ(run_timeline().size(), 0u); }

TEST(RunTimeline, BeginsAtTheFirstValue) {
  run_timeline t;
  t.record(1'000'000'000'000, 5);
  t.record(1'000'000'000'001, 7);
  ASSERT_EQ(t.size(), 1u);
  EXPECT_EQ(t[0].count, 2u);
  EXPECT_EQ(t[0].mean(), 6);
  EXPECT_EQ(t[0].max, 7u);
  t.record(0, 1); // a clock of another thread may be a little late
  EXPECT_EQ(t[0].count, 3u);
}

TEST(RunTimeline, JoinsNeighboursWhenTheRunIsLonger) {
  run_timeline t;
  const std::uint64_t part = t.part_ns();
  for (std::uint64_t i = 0; i < run_timeline::kMaxParts; ++i)
    t.record(100 + i * part, i);
  EXPECT_EQ(t.size(), run_timeline::kMaxParts);
  t.record(100 + run_timeline::kMaxParts * part, 1000);
  EXPECT_EQ(t.part_ns(), 2 * part);
  ASSERT_EQ(t.size(), run_timeline::kMaxParts / 2 + 1);
  EXPECT_EQ(t[3].count, 2u);
  EXPECT_EQ(t[3].sum, 6u + 7u);
  EXPECT_EQ(t[3].max, 7u);
  EXPECT_EQ(t[run_timeline::kMaxParts / 2].max, 1000u);
}

TEST(RunTimeline, LosesNoValueHoweverLongTheRunIs) {
  run_timeline t;
  std::uint64_t at = 1, n = 0;
  for (; at < UINT64_MAX / 4; at *= 3, ++n)
    t.record(at, at);
  EXPECT_EQ(all_counts(t), n);
  EXPECT_LE(t.size(), run_timeline::kMaxParts);
  EXPECT_GE(t.part_ns() * t.size(), at / 3 - 1) << "the parts reach to the last value";
}

constexpr std::uint64_t kSecond = 1'000'000'000;

// Known failure 69.
TEST(ProgressText, HasPartRateAndTimeLeft) {
  EXPECT_EQ(progress_text({"pass 1", "shots", 20000}, 5000, 2 * kSecond, 2500),
            "pass 1: 25 %, 5000 of 20000 shots, 2500/s, 6 s left");
  EXPECT_EQ(progress_text({"bench", "repetitions", 12}, 3, 60 * kSecond, 0.05),
            "bench: 25 %, 3 of 12 repetitions, 0.1/s, 3 min 0 s left");
  EXPECT_EQ(progress_text({"bench", "repetitions", 1000}, 1, 10 * kSecond, 0.1),
            "bench: 0 %, 1 of 1000 repetitions, 0.1/s, 2 h 46 min left");
}

TEST(ProgressText, CountsTheTimeOfARunWithADuration) {
  EXPECT_EQ(progress_text({"demo", "shots", 20000, 10 * kSecond}, 777, 4 * kSecond, 12345),
            "demo: 40 %, 777 shots, 12.3 k/s, 6 s left");
  EXPECT_EQ(progress_text({"demo", "shots", 20000, 10 * kSecond}, 777, 11 * kSecond, 12345),
            "demo: 100 %, 777 shots, 12.3 k/s, 0 s left");
}

TEST(ProgressText, GuessesNothing) {
  EXPECT_EQ(progress_text({"decode"}, 4096, kSecond, 4096), "decode: 4096 shots, 4096/s") << "the end is not known";
  EXPECT_EQ(progress_text({"pass", "shots", 100}, 0, kSecond, 0), "pass: 0 %, 0 of 100 shots, 0.0/s")
      << "nothing is done, so the time that is left is not known";
}

TEST(SendingPace, IsKeptIfTheLastRoundWasAtMostAHundredthLate) {
  sending_pace pace;
  pace.add(1000, 2000, 20'000, 7); // 2 ms
  EXPECT_TRUE(pace.kept());
  EXPECT_EQ(pace.text(), "kept: a round each 2.00 us, at worst 7 rounds late");
  pace.add(1000, 2000, 2'000'000, 900);
  EXPECT_FALSE(pace.kept());
  EXPECT_NEAR(pace.ratio(), 4.0 / 6.02, 1e-9);
  EXPECT_EQ(pace.text(), "NOT kept: a round each 3.01 us instead of 2.00 us, 66 % of the rate");
}

TEST(SendingPace, IsNotKeptByAnExperimentThatWasFarTooLateAndMadeUpForIt) {
  sending_pace pace;
  pace.add(100'000, 1000, 0, 1000);
  EXPECT_TRUE(pace.kept()) << "a hundredth";
  pace.add(100'000, 1000, 0, 1001);
  pace.add(1'000'000, 1000, 0, 0);
  EXPECT_FALSE(pace.kept());
  EXPECT_EQ(pace.ratio(), 1);
  EXPECT_EQ(pace.text(), "NOT kept: a round each 1.00 us, but at worst 1001 rounds late");
  EXPECT_TRUE(pace.kept_within(1'001'000));
  EXPECT_FALSE(pace.kept_within(1'000'000));
  pace.add(1000, 1000, 100'000'000, 0);
  EXPECT_FALSE(pace.kept_within(1e12)) << "slower than planned";
}

TEST(SendingPace, AsFastAsItGoesIsNoPace) {
  sending_pace pace;
  EXPECT_FALSE(pace.has_plan());
  pace.add(1000, 0, 0, 500);
  EXPECT_FALSE(pace.has_plan());
  EXPECT_EQ(pace.text(), "none");
}

// Signals that come one after another.

using namespace std::chrono_literals;

TEST(InterruptGuard, TwoSignalsAtOnceAreOneWishToEnd) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const interrupt_guard guard;
    EXPECT_FALSE(interrupt_guard::interrupted());
    std::raise(signal);
    EXPECT_TRUE(interrupt_guard::interrupted());
    std::raise(signal); // would end this program
    std::raise(SIGTERM);
    EXPECT_TRUE(interrupt_guard::interrupted());
  }
}

TEST(InterruptGuardDeathTest, OneThatComesLaterEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const interrupt_guard guard;
        std::raise(SIGTERM);
        std::this_thread::sleep_for(600ms);
        std::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

} // namespace
} // namespace cudaq::realtime::tools
