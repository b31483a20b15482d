// SPDX-License-Identifier: Apache-2.0
#include "tools/common/terminal.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools {
namespace {

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

} // namespace
} // namespace cudaq::realtime::tools
