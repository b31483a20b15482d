// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/loopback_check.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools {
namespace {

// Each part does its work a little later than the one before it.
TEST(SilentHop, IsTheFirstPartThatDidNothing) {
  hop_counts c;
  c.connected = false;
  EXPECT_EQ(silent_hop(c), "the dispatcher's thread does not run");
  c.heartbeat = 5;
  EXPECT_NE(silent_hop(c).find("the provider does not answer the client"), std::string::npos);
  c = {};
  EXPECT_EQ(silent_hop(c), "the client cannot send the request");
  c.sent = true;
  hop_counts known = c;
  known.provider_counts = true;
  EXPECT_NE(silent_hop(known).find("does not arrive at the provider"), std::string::npos);
  known.arrived = 1;
  EXPECT_NE(silent_hop(known).find("the provider drops the request"), std::string::npos);
  known.accepted = 1;
  for (hop_counts *counts : {&c, &known}) { // also if the provider counts nothing
    EXPECT_EQ(silent_hop(*counts), "the dispatcher's thread does not run");
    counts->heartbeat = 5;
    EXPECT_EQ(silent_hop(*counts), "the dispatcher does not see the request");
    counts->received = 1;
    EXPECT_EQ(silent_hop(*counts), "the handler was not called");
    counts->handled = 1;
    EXPECT_EQ(silent_hop(*counts), "the handler ran, but its answer did not arrive at the client");
  }
}

} // namespace
} // namespace cudaq::realtime::tools
