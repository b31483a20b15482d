// SPDX-License-Identifier: Apache-2.0
#include "tools/common/sending_pace.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools {
namespace {

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
}

TEST(SendingPace, AsFastAsItGoesIsNoPace) {
  sending_pace pace;
  EXPECT_FALSE(pace.has_plan());
  pace.add(1000, 0, 0, 500);
  EXPECT_FALSE(pace.has_plan());
  EXPECT_EQ(pace.text(), "none");
}

} // namespace
} // namespace cudaq::realtime::tools
