// SPDX-License-Identifier: Apache-2.0
// Whether a client of the shm provider could map requests in GPU memory: machines that are made up.
#include "tools/doctor/doctor_checks.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools {
namespace {

cuda_device device_that(bool maps, bool by_vulkan, const char *text) {
  cuda_device d;
  d.maps_requests = maps;
  d.maps_by_vulkan = by_vulkan;
  d.mapping_of_those = text;
  return d;
}

TEST(GpuRequestLines, SayForEachDeviceWhetherAClientCanMapThem) {
  cuda_probe probe;
  probe.devices = {device_that(true, true, "Vulkan"), device_that(true, false, "GDRCopy"),
                   device_that(false, false, "Vulkan: no library")};
  const std::vector<finding> lines = gpu_request_lines(probe);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].name, "requests gpu 0");
  EXPECT_EQ(lines[0].is, grade::good);
  EXPECT_EQ(lines[1].is, grade::warning);
  EXPECT_NE(lines[1].detail.find("GDRCopy"), std::string::npos) << "its memory cannot be given to another process";
  EXPECT_EQ(lines[2].is, grade::warning);
  EXPECT_NE(lines[2].detail.find("no client can map them: Vulkan: no library"), std::string::npos);
  for (const finding &f : {lines[1], lines[2]})
    EXPECT_NE(f.remedy.find("libvulkan1"), std::string::npos) << f.remedy;
}

TEST(GpuRequestLines, SayThatThereIsNoGpu) {
  const std::vector<finding> lines = gpu_request_lines({});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].is, grade::warning);
  EXPECT_NE(lines[0].detail.find("no GPU"), std::string::npos);
}

} // namespace
} // namespace cudaq::realtime::tools
