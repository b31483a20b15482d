// SPDX-License-Identifier: Apache-2.0
#include "tools/services/provider_service.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools {
namespace {

TEST(ServeBanner, HasTheNumbersThatScriptsOfASensorBridgeRead) {
  EXPECT_EQ(bridge_banner("transport=cpu_roce qp_config=hsb_fpga peer_ip=10.0.0.1 qp=0x1a rkey=4950 buffer_addr=0x0"),
            "=== Bridge Ready ===\nQP Number: 0x1a\nRKey: 4950\nBuffer Addr: 0x0");
}

TEST(ServeBanner, IsEmptyForOtherTransports) {
  EXPECT_EQ(bridge_banner("transport=udp port=7 address=127.0.0.1"), "");
  EXPECT_EQ(bridge_banner("transport=cpu_roce port=7 roce_ip=10.0.0.2"), "");
}

} // namespace
} // namespace cudaq::realtime::tools
