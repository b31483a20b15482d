// SPDX-License-Identifier: Apache-2.0
// doctor --transport ucx, on a machine that has UCX.
#include "unittests/support/program_paths.h"
#include "unittests/tools/doctor/made_up_machine.h"

namespace cudaq::realtime::tools::test {
namespace {

nlohmann::json judged() { return run_program("doctor --json --transport ucx").json(); }
/// Of a run that must report something wrong.
nlohmann::json judged_wrong() {
  const program_result r = run_program("doctor --json --transport ucx --timeout 1");
  EXPECT_EQ(r.exit_code, 1) << "-1: it crashed";
  return r.json();
}
std::string line(const nlohmann::json &report, const std::string &name) {
  return line_of(report, name == "loopback" ? "self-test" : "transport ucx", name);
}

TEST(DoctorUcx, NamesProviderVersionAndWaysAndSendsARequest) {
  const auto j = judged();
  EXPECT_TRUE(contains(line(j, "provider"), "good: ")) << line(j, "provider");
  EXPECT_TRUE(contains(line(j, "provider"), "/libcudaq-realtime-bridge-ucx.so")) << line(j, "provider");
  EXPECT_TRUE(contains(line(j, "UCX"), "good: version 1.")) << line(j, "UCX");
  EXPECT_TRUE(contains(line(j, "local nodes"), "/memory")) << line(j, "local nodes");
  EXPECT_TRUE(contains(line(j, "remote nodes"), "/")) << line(j, "remote nodes");
  EXPECT_TRUE(contains(line(j, "loopback"), ": one request through client, provider and dispatcher and back in "))
      << line(j, "loopback");
  EXPECT_TRUE(contains(line(j, "loopback"), ", over ")) << line(j, "loopback");
}

TEST(DoctorUcx, SaysWhatTheEnvironmentLeavesOut) {
  const environment_variable only_tcp("UCX_TLS", "tcp"), only_loopback("UCX_NET_DEVICES", "lo");
  const auto j = judged();
  EXPECT_EQ(line(j, "local nodes"), "warning: no shared memory; UCX_TLS=tcp; UCX_NET_DEVICES=lo");
  EXPECT_EQ(line(j, "remote nodes"),
            "warning: none can be reached: tcp/lo is the only way; UCX_TLS=tcp; UCX_NET_DEVICES=lo");
  EXPECT_TRUE(contains(line(j, "loopback"), ", over tcp")) << line(j, "loopback");
}

TEST(DoctorUcx, NamesTheSilentPartWhereUcxCannotConnect) {
  const environment_variable without_tcp("UCX_TLS", "posix");
  const auto j = judged_wrong();
  EXPECT_EQ(line(j, "remote nodes"),
            "wrong: neither tcp nor RDMA, over which UCX connects local nodes, too; UCX_TLS=posix");
  EXPECT_TRUE(contains(line(j, "loopback"), "wrong: the provider does not answer the client")) << line(j, "loopback");
}

TEST(DoctorUcx, ReportsTransportsThatUcxDoesNotKnow) {
  const environment_variable unknown("UCX_TLS", "nothing");
  const auto j = judged_wrong();
  EXPECT_TRUE(contains(line(j, "UCX"), "wrong: ")) << line(j, "UCX");
  EXPECT_TRUE(contains(line(j, "UCX"), "the transports")) << line(j, "UCX");
  EXPECT_TRUE(contains(line(j, "loopback"), "wrong: ")) << line(j, "loopback");
}

TEST(DoctorUcx, SaysThatThereIsNoProviderAndHowToGetIt) {
  // Far from the build tree the program finds no provider ucx.
  const scratch_folder folder;
  const auto copy = folder.path() / "cudaq-realtime";
  std::filesystem::copy_file(CUDAQ_TOOL_PATH, copy);
  const program_result r = run_program("doctor --json --transport ucx", copy);
  EXPECT_EQ(r.exit_code, 1);
  const auto j = r.json();
  EXPECT_TRUE(contains(line(j, "provider"), "wrong: the transport needs the provider ucx")) << line(j, "provider");
  EXPECT_TRUE(contains(line(j, "provider"), "libucx-dev")) << line(j, "provider");
  EXPECT_TRUE(contains(line(j, "loopback"), "wrong: ")) << line(j, "loopback");
}

} // namespace
} // namespace cudaq::realtime::tools::test
