// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/refusal_log.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

TEST(RefusalLog, CountsWhatHasGrownSinceTheLineBefore) {
  EXPECT_EQ(refusal_line({}, {}), "");
  EXPECT_EQ(refusal_line({}, {3001, 0, 0}), "messages that were not taken: 3001 answered BUSY by a decoder");
  EXPECT_EQ(refusal_line({3001, 2, 7}, {3004, 4, 27}),
            "messages that were not taken: 3 answered BUSY by a decoder, 2 answered BUSY by the transport, 20 dropped "
            "because they are no requests");
  EXPECT_EQ(refusal_line({3001, 2, 7}, {3001, 2, 7}), "");
  EXPECT_EQ(refusal_line({0, 0, 7}, {}), "") << "a provider whose counts cannot be read any more";
}

} // namespace
} // namespace cudaq::realtime::tools::test
