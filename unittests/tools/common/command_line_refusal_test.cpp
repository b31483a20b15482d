// SPDX-License-Identifier: Apache-2.0
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/run_program.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

void expect_usage_error(const std::string &arguments, const std::string &text) {
  const program_result r = run_program(arguments);
  EXPECT_EQ(r.exit_code, 2) << arguments << "\n" << r.err;
  EXPECT_TRUE(contains(r.err, text)) << arguments << "\n" << r.err;
}

TEST(CommandLine, RefusesWhatItDoesNotKnow) {
  expect_usage_error("", "subcommand");
  expect_usage_error("decodes", "decodes");
  expect_usage_error("latency --turbo", "--turbo");
  expect_usage_error("info --distance 3", "--distance");
}

TEST(CommandLine, RefusesValuesOutOfRangeAndNamesTheOption) {
  expect_usage_error("latency --slots 0", "--slots");
  expect_usage_error("latency --cores 0", "--cores");
  expect_usage_error("latency --cores 0,99999", "--cores");
  expect_usage_error("latency --exchanges -5", "--exchanges");
  expect_usage_error("latency --quick --cores 4000,4001", "core");
}

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

TEST(CommandLine, RefusesDemoValuesOutOfRangeAndNamesTheOption) {
  if (run_program("demo --help").exit_code != 0)
    GTEST_SKIP() << "this build has no decoders, so no demo";
  expect_usage_error("demo --workers 65", "--workers");
  expect_usage_error("demo --wait sometimes", "--wait");
  expect_usage_error("demo --decoder guess", "--decoder");
  expect_usage_error("demo --shots 0", "--shots");
  expect_usage_error("demo --shots 5 --duration 1", "--shots");
  expect_usage_error("demo --rate nan", "--rate");
  expect_usage_error("demo --core-producer -3", "--core-producer");
  expect_usage_error("demo --config d3 --shots 10 --core-producer 4000", "core 4000");
  expect_usage_error("demo --device tpu", "--device");
  for (const std::string command : {"demo", "pipeline"}) {
    expect_usage_error(command + " --gpu -1", "--gpu: Value -1 not in range 0 to 255");
    expect_usage_error(command + " --gpu 3", "--gpu: it has no effect without --device gpu");
  }
  expect_usage_error("pipeline --staging dma", "--staging: it has no effect without --device gpu");
  expect_usage_error("pipeline --staging resident", "--staging: it has no effect without --device gpu");
  expect_usage_error("pipeline --predecoder resident --device cpu",
                     "--device: the blocks of --predecoder resident are on a GPU");
  expect_usage_error("pipeline --predecoder resident --staging dma", "--staging: requests reach --predecoder resident");
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

TEST(CommandLine, SaysWhenAReportCannotBeWritten) {
  expect_usage_error("info --json /nonexistent/report.json", "/nonexistent/report.json");
}

} // namespace
} // namespace cudaq::realtime::tools::test
