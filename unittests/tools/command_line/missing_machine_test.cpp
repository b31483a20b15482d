// SPDX-License-Identifier: Apache-2.0
// What the machine lacks ends a command with status 3, in each command: the same words may be good elsewhere or later.
#include "unittests/tools/common/run_program.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>
#include <utility>

namespace cudaq::realtime::tools::test {
namespace {

class MissingMachine : public testing::Test {
protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/gpu.yaml") << "decoders:\n  - id: 0\n    type: relay-bp\n    dispatch: device_graph\n"
                                            "    dem: error(0.1) D0 L0\n";
    std::ofstream(folder_ + "/small.yaml") << "decoders:\n  - {id: 0, type: lookup, dem: 'error(0.1) D0 L0'}\n";
    std::ofstream(folder_ + "/m.dem") << "error(0.1) D0 L0\n";
    std::ofstream(folder_ + "/loop.dem") << "error(0.1) D0 L0\ndetector(0, 0) D0\nrepeat 9 {\n error(0.1) D0 D1\n"
                                            " error(0.1) D1 L0\n shift_detectors(0, 1) 1\n detector(0, 0) D0\n}\n"
                                            "error(0.1) D0 D1\ndetector(0, 1) D1\n";
    std::ofstream(folder_ + "/s.01") << "1\n";
    std::ofstream(folder_ + "/rounds.01") << "11111111111\n";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void expect_refused(const std::string &command, const std::string &text,
                      const std::filesystem::path &program = CUDAQ_TOOL_PATH) const {
    const program_result run = run_program(command, program);
    EXPECT_EQ(run.exit_code, 3) << command << "\n" << run.err;
    EXPECT_TRUE(contains(run.err, text)) << command << "\n" << run.err;
  }
  /// A program that sets a limit of the shell, and then becomes the tool.
  std::string limited(const std::string &limit, const std::string &redirected = "") const {
    const std::string path = folder_ + "/limited";
    std::ofstream(path) << "#!/bin/sh\n" << limit << "\nexec '" << CUDAQ_TOOL_PATH << "' \"$@\" " << redirected << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  const std::string folder_ = testing::TempDir() + "missing_machine_" + std::to_string(getpid());
};

TEST_F(MissingMachine, AGpuThatIsNotThereIsStatus3InEachCommand) {
  if (access("/dev/nvidiactl", F_OK) == 0)
    GTEST_SKIP() << "this machine has a GPU";
  const std::string f = folder_ + "/", shots = " --in " + f + "s.01 --in_format 01 --out /dev/null";
  const std::string set = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003";
  const std::pair<std::string, const char *> rows[] = {
      {"decode --decoder relay-bp-gpu --dem " + f + "m.dem" + shots, "relay-bp-gpu"},
      {"decode --decoder 'race:relay-bp|relay-bp-gpu' --dem " + f + "m.dem" + shots, "relay-bp-gpu"},
      {"decode --decoder sliding-window:inner=relay-bp-gpu,commit=2,buffer=2 --dem " + f + "loop.dem" + shots,
       "relay-bp-gpu"},
      {"decode --stream --commit 2 --buffer 2 --decoder relay-bp-gpu --dem " + f + "loop.dem --in " + f +
           "rounds.01 --out /dev/null",
       "relay-bp-gpu"},
      {"decode --decoder model-gpu:weights=" + std::string(CUDAQ_TEST_NETWORK) + " --dem " + set + ".dem --in " + set +
           ".dets.b8 --out /dev/null",
       "model-gpu"},
      {"demo --decoder relay-bp-gpu --shots 10", "relay-bp-gpu"},
      {"pipeline --decoder relay-bp-gpu --shots 10", "relay-bp-gpu"},
      {"pipeline --device gpu --shots 10", "GPU"},
      {"pipeline --predecoder resident --shots 10", "GPU"},
      {"serve --check " + f + "gpu.yaml", "relay-bp-gpu"},
      {"serve --config " + f + "gpu.yaml --transport udp -- --port=0", "relay-bp-gpu"},
  };
  for (const auto &[command, text] : rows)
    expect_refused(command, text);
}

TEST_F(MissingMachine, FilesAndDisksThatAreUsedUpAreStatus3) {
  const std::string check = "serve --check " + folder_ + "/small.yaml";
  expect_refused(check, "Too many open files", limited("exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n 4"));
  expect_refused(check + " --json", "No space left", limited("", ">/dev/full"));
}

TEST_F(MissingMachine, AWrongWordStaysStatus2) {
  const std::string f = folder_ + "/";
  for (const std::string &command :
       {"decode --decoder relay-bp:speed=3 --dem " + f + "m.dem --in " + f + "s.01 --out /dev/null",
        "decode --decoder relay-bp --dem " + f + "none.dem --in " + f + "s.01 --out /dev/null",
        "serve --check " + f + "none.yaml"})
    EXPECT_EQ(run_program(command).exit_code, 2) << command;
}

} // namespace
} // namespace cudaq::realtime::tools::test
