// SPDX-License-Identifier: Apache-2.0
// doctor --transport gpu-roce, with a provider and without one. The lines about a GPU depend on this machine, so only
// what holds on every machine is compared.
#include "unittests/support/program_paths.h"
#include "unittests/tools/doctor/made_up_machine.h"

namespace cudaq::realtime::tools::test {
namespace {

/// Runs a copy of the program far from the build tree: it finds no provider except beside itself.
program_result doctor(const made_up_machine &m) {
  const auto copy = m.path() / "cudaq-realtime";
  if (!std::filesystem::exists(copy))
    std::filesystem::copy_file(CUDAQ_TOOL_PATH, copy);
  return run_program("doctor --json --transport gpu-roce --root '" + m.path().string() + "'", copy);
}

std::string judged(const made_up_machine &m, const std::string &name) {
  const program_result r = doctor(m);
  return line_of(r.json(), name == "loopback" ? "self-test" : "transport gpu-roce", name);
}

TEST(DoctorGpuRoce, SaysThatTheLibraryIsNotThere) {
  const made_up_machine m;
  EXPECT_TRUE(contains(judged(m, "provider"), "wrong: libcudaq-realtime-bridge-gpu-roce.so: "))
      << judged(m, "provider");
  EXPECT_EQ(doctor(m).exit_code, 1);
}

TEST(DoctorGpuRoce, NamesTheLibraryBesideTheProgram) {
  const made_up_machine m;
  const auto library = m.path() / "libcudaq-realtime-bridge-gpu-roce.so";
  std::filesystem::create_symlink(CUDAQ_UDP_PROVIDER, library);
  EXPECT_EQ(judged(m, "provider"), "good: " + library.string());
}

TEST(DoctorGpuRoce, JudgesGpuAndPeerMemory) {
  made_up_machine m;
  EXPECT_TRUE(contains(judged(m, "GPU for the provider"), ": ")) << judged(m, "GPU for the provider");
  const std::string without = judged(m, "peer memory");
  EXPECT_TRUE(contains(without, "wrong: neither nvidia_peermem nor dma-buf") || contains(without, "dma-buf"))
      << without;
  m.file("sys/module/nvidia_peermem/refcnt", "0");
  EXPECT_EQ(judged(m, "peer memory"), "good: the module nvidia_peermem is loaded");
}

TEST(DoctorGpuRoce, RefusesAdaptersThatAreSoftware) {
  made_up_machine m;
  EXPECT_EQ(judged(m, "RDMA devices"), "wrong: none");
  for (const std::string adapter : {"mlx5_0", "rxe0"}) {
    const std::string at = "sys/class/infiniband/" + adapter + "/";
    m.file(at + "ports/1/state", "4: ACTIVE");
    m.file(at + "ports/1/gid_attrs/types/1", "RoCE v2");
    m.file(at + "ports/1/gids/1", "0000:0000:0000:0000:0000:ffff:0a09:0001");
  }
  m.file("sys/class/infiniband/mlx5_0/device/vendor", "0x15b3");
  EXPECT_EQ(judged(m, "mlx5_0 port 1"), "good: active, 1 RoCE v2 GIDs");
  EXPECT_EQ(judged(m, "adapter mlx5_0"), "no such line");
  EXPECT_EQ(judged(m, "adapter rxe0"), "wrong: is software: it cannot write into a GPU");
}

TEST(DoctorGpuRoce, SaysThatNoRequestWasSent) {
  EXPECT_EQ(judged(made_up_machine(), "loopback"),
            "warning: not tested: that needs an RDMA adapter, a GPU, and a peer that sends");
}

} // namespace
} // namespace cudaq::realtime::tools::test
