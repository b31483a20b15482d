// SPDX-License-Identifier: Apache-2.0
#include "tools/common/run_timeline.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools {
namespace {

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

} // namespace
} // namespace cudaq::realtime::tools
