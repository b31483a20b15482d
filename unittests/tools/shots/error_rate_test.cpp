// SPDX-License-Identifier: Apache-2.0
#include "tools/shots/own_data.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools {
namespace {

TEST(ErrorRate, OfARepeatedSetHasTheIntervalOfItsDifferentShots) {
  const auto once = error_rate{6, 1000}.interval_95(), again = error_rate{1200, 200000, 1000}.interval_95(),
             part = error_rate{6, 1000, 2000}.interval_95();
  EXPECT_DOUBLE_EQ(again.low, once.low);
  EXPECT_DOUBLE_EQ(again.high, once.high);
  EXPECT_DOUBLE_EQ(part.low, once.low) << "fewer than the set has";
  EXPECT_DOUBLE_EQ((error_rate{0, 5000, 1000}.interval_95().high), (error_rate{0, 1000}.interval_95().high));
}

} // namespace
} // namespace cudaq::realtime::tools
