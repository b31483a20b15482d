// SPDX-License-Identifier: Apache-2.0
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/run_program.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

TEST(CommandLine, SaysWhatTheDevicePathLacksHere) {
  if (run_program("info --json").json().at("cuda").value("devices", nlohmann::json::array()).size() != 0)
    GTEST_SKIP() << "there is a GPU";
  if (run_program("demo --help").exit_code != 0)
    GTEST_SKIP() << "this build has no decoders, so no demo and no pipeline";
  for (const char *arguments : {"demo --device gpu --config d3", "pipeline --device gpu"}) {
    const program_result r = run_program(arguments);
    EXPECT_EQ(r.exit_code, 3) << arguments << "\n" << r.err;
    EXPECT_TRUE(contains(r.err, "no GPU can be used") || contains(r.err, "no device kernels") ||
                contains(r.err, "cudaq-realtime-gpu, which is not built"))
        << r.err;
  }
}

TEST(CommandLine, ContinuesInTheProgramWithDeviceKernels) {
  if (run_program("demo --help").exit_code != 0)
    GTEST_SKIP() << "this build has no decoders, so no demo";
  // A copy of the program, and beside it a script with that program's name, which prints its arguments.
  const scratch_folder folder;
  const std::filesystem::path copy = folder.path() / "cudaq-realtime", other = folder.path() / "cudaq-realtime-gpu";
  copy_file(CUDAQ_TOOL_PATH, copy);
  std::ofstream(other) << "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 7\n";
  permissions(other, std::filesystem::perms::owner_all);
  const program_result r = run_program("demo --device gpu --seed 5 --json 'a b'", copy);
  EXPECT_EQ(r.exit_code, 7) << r.err;
  EXPECT_EQ(r.out, "<demo><--device><gpu><--seed><5><--json><a b>");
  remove(other);
  EXPECT_EQ(run_program("demo --device gpu", copy).exit_code, 3);
}

TEST(CommandLine, TeachesWithExamples) {
  for (const std::string command : {"", "help", "demo", "latency", "info"}) {
    const program_result r = run_program(command + " --help");
    if (command == "demo" && r.exit_code != 0)
      continue; // no decoders in this build
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_TRUE(contains(r.out, "cudaq-realtime " + (command.empty() ? "demo" : command))) << r.out;
  }
}

} // namespace
} // namespace cudaq::realtime::tools::test
