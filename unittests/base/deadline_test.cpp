// SPDX-License-Identifier: Apache-2.0
// The one place where the library adds a duration of its interface to a time.
#include "lib/base/runner.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::detail {
namespace {

constexpr std::uint64_t kDay = 86400ull * 1000000000u;

// Known failure 44.
TEST(Deadline, SaturatesWhereASumWouldOverflow) {
  for (const std::uint64_t ns : {std::uint64_t{INT64_MAX} - 1, std::uint64_t{INT64_MAX}, std::uint64_t{INT64_MAX} + 1,
                                 UINT64_MAX - 1, UINT64_MAX})
    EXPECT_EQ(deadline_after(ns), steady_clock::time_point::max()) << ns;
}

TEST(Deadline, LiesExactlyAfterNowForDurationsThatFit) {
  for (const std::uint64_t ns : {std::uint64_t{0}, std::uint64_t{1}, kDay, std::uint64_t{1} << 62}) {
    const auto before = steady_clock::now();
    const auto deadline = deadline_after(ns);
    const auto after = steady_clock::now();
    EXPECT_GE(deadline - std::chrono::nanoseconds(ns), before) << ns;
    EXPECT_LE(deadline - std::chrono::nanoseconds(ns), after) << ns;
  }
}

} // namespace
} // namespace cudaq::realtime::detail
