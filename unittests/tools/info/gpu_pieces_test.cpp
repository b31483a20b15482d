// SPDX-License-Identifier: Apache-2.0
// What `info` says of GPUs that are made up.
#include "tools/info/gpu_pieces.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

TEST(InfoGpuPieces, RequestsInGpuMemoryAreThereIfOneGpuHasAWay) {
  cuda_probe probe;
  probe.driver_found = true;
  probe.devices.resize(2);
  probe.devices[0].mapping_of_those = "no way to map memory of device 0";
  probe.devices[1].mapping_of_those = "no way to map memory of device 1";
  piece p = requests_piece(probe);
  EXPECT_FALSE(p.present);
  EXPECT_EQ(p.detail, "no way to map memory of device 0; no way to map memory of device 1");
  EXPECT_NE(p.get.find("docs/guide/rings.md"), std::string::npos);
  probe.devices[1].maps_requests = true;
  probe.devices[1].mapping_of_those = "mapping by Vulkan; writes ordering 100";
  p = requests_piece(probe);
  EXPECT_TRUE(p.present);
  EXPECT_EQ(p.detail, "no way to map memory of device 0; mapping by Vulkan; writes ordering 100");
}

TEST(InfoGpuPieces, AMachineWithoutAGpuHasNone) {
  cuda_probe probe;
  probe.error = "no driver";
  EXPECT_FALSE(requests_piece(probe).present);
  EXPECT_EQ(requests_piece(probe).detail, "no device");
  EXPECT_FALSE(devices_piece(probe).present);
  EXPECT_FALSE(driver_piece(probe).present);
  EXPECT_EQ(driver_piece(probe).detail, "no driver");
}

} // namespace
} // namespace cudaq::realtime::tools::test
