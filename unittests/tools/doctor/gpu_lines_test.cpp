// SPDX-License-Identifier: Apache-2.0
// The lines of `doctor` on GPUs that are made up: how requests get into their memory.
#include "tools/doctor/doctor_checks.h"
#include "tools/info/gpu_pieces.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace cudaq::realtime::tools::test {
namespace {

/// A folder in place of "/", which may have the device of GDRCopy's module.
class made_up_root {
public:
  explicit made_up_root(bool gdrcopy) {
    std::filesystem::create_directories(path_ / "dev");
    if (gdrcopy)
      std::ofstream(path_ / "dev/gdrdrv") << "\n";
  }
  ~made_up_root() { std::filesystem::remove_all(path_); }
  made_up_root(const made_up_root &) = delete;
  made_up_root &operator=(const made_up_root &) = delete;
  [[nodiscard]] system_files files() const { return system_files(path_.string()); }

private:
  const std::filesystem::path path_ =
      std::filesystem::path(::testing::TempDir()) / ("doctor_gpu_lines_" + std::to_string(getpid()));
};

cuda_probe two_gpus() {
  cuda_probe probe;
  probe.driver_found = true;
  probe.driver_version = 13000;
  probe.devices.resize(2);
  for (cuda_device &d : probe.devices)
    d.name = "GPU of a test", d.major = 9;
  probe.devices[0].maps_requests = true;
  probe.devices[0].mapping_of_those = "mapping by Vulkan, because GDRCopy: /dev/gdrdrv is missing; writes ordering 100";
  probe.devices[1].mapping_of_those = "no way to map memory of device 1 for the CPU. Vulkan: not installed";
  return probe;
}

const finding *line_named(const std::vector<finding> &lines, const std::string &name) {
  for (const finding &f : lines)
    if (f.name == name)
      return &f;
  return nullptr;
}

TEST(DoctorGpuLines, SayHowRequestsGetIntoTheMemoryOfEachGpu) {
  const made_up_root root(false);
  const std::vector<finding> lines = check_gpu(root.files(), two_gpus());
  const finding *const first = line_named(lines, "requests in memory of GPU 0");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->is, grade::good);
  EXPECT_EQ(first->detail, two_gpus().devices[0].mapping_of_those);
  EXPECT_EQ(first->remedy, "");
  const finding *const second = line_named(lines, "requests in memory of GPU 1");
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->is, grade::warning);
  EXPECT_EQ(second->detail, two_gpus().devices[1].mapping_of_those);
  EXPECT_NE(second->remedy.find("install libvulkan1"), std::string::npos) << second->remedy;
  EXPECT_EQ(line_named(lines, "GDRCopy"), nullptr) << "there is no /dev/gdrdrv";
  EXPECT_EQ(line_named(lines, "coherent memory"), nullptr);
}

TEST(DoctorGpuLines, NameGdrCopyAndCoherentMemoryWhereTheyAre) {
  const made_up_root root(true);
  cuda_probe probe = two_gpus();
  probe.devices[1].host_native_atomics = true;
  const std::vector<finding> lines = check_gpu(root.files(), probe);
  const finding *const driver = line_named(lines, "GDRCopy");
  ASSERT_NE(driver, nullptr);
  EXPECT_EQ(driver->is, grade::good);
  EXPECT_NE(line_named(lines, "coherent memory"), nullptr);
}

TEST(DoctorGpuLines, SayWhetherTheBuildHasDeviceKernels) {
  const made_up_root root(false);
  const std::vector<finding> lines = check_gpu(root.files(), {});
  const finding *const kernels = line_named(lines, "device kernels");
  ASSERT_NE(kernels, nullptr);
  EXPECT_EQ(kernels->is, built_with_kernels() ? grade::good : grade::warning);
  EXPECT_EQ(kernels->detail, kernels_piece().detail) << "doctor and info say the same";
  EXPECT_EQ(kernels->remedy.empty(), built_with_kernels());
}

TEST(DoctorGpuLines, NoMappingIsNamedWithoutAGpu) {
  const made_up_root root(false);
  cuda_probe probe;
  probe.driver_found = true;
  probe.error = "the driver finds no device";
  const std::vector<finding> lines = check_gpu(root.files(), probe);
  EXPECT_EQ(line_named(lines, "requests in memory of GPU 0"), nullptr);
  EXPECT_EQ(line_named(lines, "pinned rings"), nullptr);
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.front().is, grade::wrong);
}

} // namespace
} // namespace cudaq::realtime::tools::test
