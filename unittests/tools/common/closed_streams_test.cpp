// SPDX-License-Identifier: Apache-2.0
// Every subcommand with each combination of closed standard streams, as daemons start programs.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/closed_streams.h"
#include "unittests/tools/common/run_program.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

int status_of(const std::string &arguments, unsigned streams) {
  const std::string command =
      std::string(kWithLimit) + "'" + CUDAQ_TOOL_PATH + "' " + arguments + " </dev/null >/dev/null 2>/dev/null";
  const int status = std::system((command + closed(streams)).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Its report goes to a file, and is that of a run with all streams, however many are closed.
void expect_same_report(const std::string &arguments) {
  const scratch_folder scratch;
  const auto file = scratch.path() / "report.json";
  const int expected = status_of(arguments + " --json " + file.string(), 0);
  for (unsigned streams = 1; streams < 8; ++streams) {
    std::filesystem::remove(file);
    EXPECT_EQ(status_of(arguments + " --json " + file.string(), streams), expected) << arguments << closed(streams);
    const auto report = nlohmann::json::parse(read_file(file), nullptr, false);
    ASSERT_FALSE(report.is_discarded()) << arguments << closed(streams) << "\n" << read_file(file);
    EXPECT_EQ(report.at("exit_status"), expected) << arguments << closed(streams);
  }
}

bool cannot_decode() { return run_program("demo --help").exit_code != 0; }

TEST(ClosedStreams, ChangeNoReport) {
  for (const char *arguments : {"info", "help latency", "completion bash", "doctor"})
    expect_same_report(arguments);
}

TEST(ClosedStreams, ChangeNoReportOfADecoder) {
  if (cannot_decode())
    GTEST_SKIP() << "this build has no decoders";
  const std::string model = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003";
  const std::string own = " --dem " + model + ".dem --in " + model + ".dets.b8 --decoder lookup";
  const scratch_folder scratch;
  const std::string loop = scratch.path() / "loop.dem", rounds = scratch.path() / "rounds.01";
  std::ofstream(loop) << "repeat 5 {\ndetector(0) D0\nerror(0.1) D0 L0\nshift_detectors(1) 1\n}\n";
  std::ofstream(rounds) << "0\n1\n0\n";
  for (const std::string &arguments :
       {"demo --shots 20" + own, "pipeline --shots 20 --workers 1" + own, "emulate --transport ring --shots 20" + own,
        "decode --out /dev/null --out_format b8" + own,
        "decode --stream --commit 2 --buffer 1 --decoder lookup --out /dev/null --dem " + loop + " --in " + rounds})
    expect_same_report(arguments);
}

TEST(ClosedStreams, ChangeNoReportOfAMeasurement) {
  const scratch_folder scratch;
  const auto file = (scratch.path() / "report.json").string();
  EXPECT_EQ(status_of("latency --quick --json " + file, 7), 0);
  EXPECT_EQ(nlohmann::json::parse(read_file(file), nullptr, false).value("ok", false), true);
}

TEST(ClosedStreams, AreRefusedIfTheResultOrTheInputIsThere) {
  if (cannot_decode())
    GTEST_SKIP() << "this build has no decoders";
  const std::string dem = " --dem " + std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003.dem --decoder lookup";
  const scratch_folder scratch;
  const auto refusal = [&](const std::string &arguments, unsigned streams) {
    const auto err = scratch.path() / "err";
    const std::string command = std::string("'") + CUDAQ_TOOL_PATH + "' " + arguments + " </dev/null >/dev/null 2>'" +
                                err.string() + "'" + closed(streams);
    const int status = std::system(command.c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << arguments << "\n" << read_file(err);
    return read_file(err);
  };
  EXPECT_TRUE(contains(refusal("info --json", 2), "--json writes to stdout, which is closed"));
  EXPECT_TRUE(contains(refusal("decode" + dem, 2), "--out is stdout, which is closed"));
  EXPECT_TRUE(contains(refusal("decode" + dem, 1), "--in is stdin, which is closed"));
  EXPECT_TRUE(contains(refusal("decode --stream" + dem, 2), "--out is stdout, which is closed"));
  EXPECT_TRUE(contains(refusal("decode --stream" + dem, 1), "--in is stdin, which is closed"));
}

TEST(FullStdout, IsTheStatusOfTheReportToo) {
  if (!std::filesystem::exists("/dev/full"))
    GTEST_SKIP() << "this system has no /dev/full";
  const scratch_folder scratch;
  const auto file = scratch.path() / "report.json";
  const std::string command = std::string("'") + CUDAQ_TOOL_PATH + "' info --json " + file.string() + " >/dev/full";
  const int status = std::system((command + " 2>/dev/null").c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3);
  const auto report = nlohmann::json::parse(read_file(file), nullptr, false);
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report.at("exit_status"), 3);
  EXPECT_TRUE(contains(report.at("error"), "stdout cannot be written"));
}

} // namespace
} // namespace cudaq::realtime::tools::test
