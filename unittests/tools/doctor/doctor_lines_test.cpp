// SPDX-License-Identifier: Apache-2.0
// Lines of `doctor` and `info` on machines that are made up.
#include "tools/doctor/doctor_checks.h"
#include "tools/doctor/loopback_check.h"
#include "tools/info/gpu_pieces.h"
#include "tools/info/info.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace cudaq::realtime::tools {
namespace {

TEST(DoctorLines, JudgesARoundTripByALimit) {
  const finding quick = judged_round_trip("loopback", "one request and back", 999e3, ", over tcp");
  EXPECT_EQ(quick.is, grade::good);
  EXPECT_EQ(quick.detail, "one request and back in 999 us, over tcp");
  const finding slow = judged_round_trip("loopback", "one request and back", 21.9e6);
  EXPECT_EQ(slow.is, grade::warning);
  EXPECT_EQ(slow.detail, "one request and back in 21.9 ms: more than 1.00 ms");
  EXPECT_NE(slow.remedy, "");
}

// The lines of `doctor` on GPUs that are made up: how requests get into their memory.

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

// Whether a client of the shm provider could map requests in GPU memory: machines that are made up.

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

// What `info` says of libraries and GPUs that are made up.

TEST(InfoVersion, ALibraryFitsFromTheProgramsMinorVersionOnUntilTheNextMajorOne) {
  const std::uint32_t program = 0x010203;
  for (const std::uint32_t fitting : {0x010200, 0x010203, 0x010209, 0x010300, 0x01ff00})
    EXPECT_TRUE(library_fits(program, fitting)) << std::hex << fitting;
  for (const std::uint32_t other : {0x000203, 0x000900, 0x0101ff, 0x020000, 0x020203})
    EXPECT_FALSE(library_fits(program, other)) << std::hex << other;
}

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
} // namespace cudaq::realtime::tools
