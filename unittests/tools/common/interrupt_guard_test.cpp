// SPDX-License-Identifier: Apache-2.0
// Signals that come one after another.
#include "tools/common/interrupt.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace cudaq::realtime::tools {
namespace {

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
