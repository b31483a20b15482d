// SPDX-License-Identifier: Apache-2.0
// Exit statuses, and errors as JSON.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/run_program.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

/// The command line is refused with this status, with the same reason on stderr and as JSON.
void expect_error_report(const std::string &arguments, int status, const std::string &command,
                         const std::string &text) {
  const program_result r = run_program(arguments);
  EXPECT_EQ(r.exit_code, status) << arguments << "\n" << r.err;
  const auto j = r.json();
  ASSERT_FALSE(j.is_discarded()) << arguments << "\n" << r.out;
  EXPECT_EQ(j.at("command"), command) << arguments;
  EXPECT_EQ(j.at("ok"), false) << arguments;
  EXPECT_EQ(j.at("exit_status"), status) << arguments;
  const std::string error = j.at("error");
  EXPECT_TRUE(contains(error, text)) << error;
  EXPECT_TRUE(contains(r.err, error)) << arguments << "\n" << r.err;
}

TEST(CommandLineErrors, AreJsonIfTheCommandLineCannotBeParsed) {
  expect_error_report("--json", 2, "", "--json");
  expect_error_report("latency --slots 0 --json", 2, "latency", "--slots");
  expect_error_report("docter --json=-", 2, "", "doctor");
}

TEST(CommandLineErrors, AreJsonIfTheProgramRefusesAValue) {
  expect_error_report("latency --quick --core-producer 4000 --json", 2, "latency", "core");
  expect_error_report("help nothing --json", 2, "help", "nothing");
  expect_error_report("latency --json -- --port=1", 2, "latency", "--port=1");
}

TEST(CommandLineErrors, AreJsonIfTheSystemRefusesSomething) {
  if (run_program("info --json").json().at("cuda").value("devices", nlohmann::json::array()).size() != 0)
    GTEST_SKIP() << "there is a GPU";
  if (run_program("demo --help").exit_code != 0)
    GTEST_SKIP() << "this build has no decoders, so no demo";
  const program_result r = run_program("demo --device gpu --config d3 --json");
  EXPECT_EQ(r.exit_code, 3) << r.err;
  EXPECT_EQ(r.json().at("exit_status"), 3);
  EXPECT_EQ(r.json().at("command"), "demo");
}

TEST(CommandLineErrors, AreWrittenToTheFileOfTheReport) {
  const scratch_folder folder;
  const auto file = folder.path() / "report.json";
  EXPECT_EQ(run_program("help nothing --json " + file.string()).exit_code, 2);
  const auto j = nlohmann::json::parse(read_file(file), nullptr, false);
  ASSERT_FALSE(j.is_discarded());
  EXPECT_EQ(j.at("exit_status"), 2);
  EXPECT_EQ(j.at("error").is_string(), true);
}

TEST(CommandLineErrors, LeaveAFileAloneThatMayNotBeTheReport) {
  // `--slots` has no value, so --json may have taken a word that it should not have.
  const scratch_folder folder;
  const auto file = folder.path() / "input";
  std::ofstream(file) << "kept";
  EXPECT_EQ(run_program("latency --json " + file.string() + " --slots").exit_code, 2);
  EXPECT_EQ(read_file(file), "kept");
}

// Known failure 69.
TEST(CommandLineErrors, RefuseAFolderAsTheReportAndLeaveNoFileInIt) {
  const scratch_folder folder;
  const program_result r = run_program("info --json " + folder.path().string());
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_TRUE(contains(r.err, "it is a folder")) << r.err;
  EXPECT_EQ(run_program("help nothing --hgrm x --json").exit_code, 2);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "a test of a path must leave no file";
}

TEST(CommandLineErrors, EndWithThreeIfStdoutIsFull) {
  if (!std::filesystem::exists("/dev/full"))
    GTEST_SKIP() << "this system has no /dev/full";
  const std::string command = std::string("'") + CUDAQ_TOOL_PATH + "' info >/dev/full 2>/dev/null";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

} // namespace
} // namespace cudaq::realtime::tools::test
