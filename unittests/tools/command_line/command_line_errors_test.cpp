// SPDX-License-Identifier: Apache-2.0
// What the program refuses: exit statuses, texts, and errors as JSON.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/run_program.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>
#include <utility>

namespace cudaq::realtime::tools::test {
namespace {

// Exit statuses, and errors as JSON.

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
  expect_error_report("latency --quick --core-producer 4000 --json", 2, "latency", "core 4000");
  expect_error_report("help nothing --json", 2, "help", "nothing");
  expect_error_report("latency --json -- --port=1", 2, "latency", "--port=1");
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

// What the machine lacks ends a command with status 3, in each command: the same words may be good elsewhere or later.

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
      {"demo --device gpu --shots 10", "GPU"},
      {"pipeline --device gpu --shots 10", "GPU"},
      {"pipeline --predecoder resident --shots 10", "GPU"},
      {"serve --check " + f + "gpu.yaml", "relay-bp-gpu"},
      {"serve --config " + f + "gpu.yaml --transport udp -- --port=0", "relay-bp-gpu"},
  };
  for (const auto &[command, text] : rows)
    expect_refused(command, text);
  expect_error_report("demo --device gpu --shots 10 --json", 3, "demo", "GPU");
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

// Command lines that the program refuses before the work: the status is 2, stderr begins with the program's name and
// has this text, and stdout is empty. Refusals that need files of their own are beside the tests of their subcommand.

struct refused_line {
  std::string arguments, text;
};
/// Command lines for one reason.
struct refusals {
  const char *name;
  bool needs_decoders;
  std::vector<refused_line> lines;
};
void PrintTo(const refusals &r, std::ostream *out) { *out << r.name; }

class Refusals : public ::testing::TestWithParam<refusals> {};

// Known failure 69.
TEST_P(Refusals, NameWhatIsWrongBeforeTheWork) {
  if (GetParam().needs_decoders && !has_decoders())
    GTEST_SKIP() << "this build has no decoders, so no demo and no pipeline";
  for (const auto &[arguments, text] : GetParam().lines) {
    const program_result r = run_program(arguments);
    EXPECT_EQ(r.exit_code, 2) << arguments << "\n" << r.err;
    EXPECT_TRUE(contains(r.err, text)) << arguments << "\n" << r.err;
    EXPECT_TRUE(r.err.starts_with("cudaq-realtime")) << arguments << "\n" << r.err;
    EXPECT_EQ(r.out, "") << arguments << ": something was done";
  }
}

const std::string kNowhere = "/nonexistent/report";

const refusals kRefusals[] = {
    {"Subcommands",
     false,
     {{"decodes", "decodes"},
      {"latenci", "there is no subcommand \"latenci\". Did you mean latency?"},
      {"zzzzzzzz", ", latency, doctor, info"},
      {"help docter", "Did you mean doctor?"},
      {"completion tcsh", "tcsh"},
      {"completion", "shell is required"}}},
    {"Options",
     false,
     {{"latency --turbo", "--turbo"},
      {"info --distance 3", "--distance"},
      {"latency --exchange 5", "there is no option --exchange. Did you mean --exchanges?"},
      {"latency --exchnages=5", "there is no option --exchnages. Did you mean --exchanges?"},
      {"--versoin", "Did you mean --version?"},
      {"latency --jsn", "cudaq-realtime latency: there is no option --jsn."},
      {"latency --frobnicate", "there is no option --frobnicate.\nOptions and examples: cudaq-realtime latency --help"},
      {"info --exchanges 3", "there is no option --exchanges. It is an option of latency."},
      {"latency more words", "\"more\" is not an option"}}},
    {"Values",
     false,
     {{"latency --slots 0", "--slots"},
      {"latency --cores 0", "--cores"},
      {"latency --cores 0,99999", "--cores"},
      {"latency --exchanges -5", "--exchanges"},
      {"latency --rounds 0", "--rounds"},
      {"doctor --transport pigeon", "--transport"},
      {"doctor --port 5000", "--port"},
      {"doctor --transport udp --port 70000", "--port"},
      {"doctor --transport shm --port 5000", "--port"}}},
    {"ValuesOfDemoAndPipeline",
     true,
     {{"demo --workers 65", "--workers"},
      {"demo --wait sometimes", "--wait"},
      {"demo --decoder guess", "--decoder"},
      {"demo --shots 0", "--shots"},
      {"demo --shots 5 --duration 1", "--shots"},
      {"demo --rate nan", "--rate"},
      {"demo --core-producer -3", "--core-producer"},
      {"demo --device tpu", "--device"},
      {"demo --gpu -1", "--gpu: Value -1 not in range 0 to 255"},
      {"demo --gpu 3", "--gpu: it has no effect without --device gpu"},
      {"demo --data /nonexistent/shots", "/nonexistent/shots"},
      {std::string("demo --decoder lookup --config d13 --data '") + CUDAQ_TEST_DATA + "'", "--decoder lookup"},
      {"pipeline --shots 5 --duration 1", "--shots"},
      {"emulate --shots 5 --duration 1", "--shots"},
      {"pipeline --workers 65", "--workers"},
      {"pipeline --config d8", "--config"},
      {std::string("pipeline --config d31 --data '") + CUDAQ_TEST_DATA + "'", "make_data.py --pipeline"},
      {"pipeline --gpu -1", "--gpu: Value -1 not in range 0 to 255"},
      {"pipeline --gpu 3", "--gpu: it has no effect without --device gpu"},
      {"pipeline --staging dma", "--staging: it has no effect without --device gpu"},
      {"pipeline --staging resident", "--staging: it has no effect without --device gpu"},
      {"pipeline --predecoder resident --device cpu", "--device: the blocks of --predecoder resident are on a GPU"},
      {"pipeline --predecoder model=x --plan rate", "--plan: it has no effect without --device gpu and"},
      {"pipeline --device gpu --predecoder local --plan rate", "--plan: it has no effect without --device gpu and"},
      {"pipeline --predecoder resident --staging dma", "--staging: requests reach --predecoder resident"},
      {"pipeline --device gpu --staging resident --predecoder model=x --plan rate",
       "--plan: resident blocks have a plan"},
      {"pipeline --predecoder weights.safetensors", "auto,local,passthrough,resident}; or model=FILE"},
      {"pipeline --predecoder model= --shots 1", "--predecoder: model="}}},
    {"OldNamesBesideNewOnes",
     false,
     {{"latency --rounds 2 --repeats 2", "excludes"}, {"latency --cores 0,1 --core-dispatcher 0", "excludes"}}},
    {"OldNamesBesideNewOnesOfDemoAndPipeline",
     true,
     {{"demo --distance 3 --config d3", "excludes"},
      {"demo --cadence-us 5 --rate 5", "excludes"},
      {"pipeline --engine local --predecoder local", "excludes"},
      {"demo --dem a.dem --in a.b8 --distance 3", "excludes"}}},
    {"Cores",
     false,
     {{"latency --quick --core-producer 4000", "--core-producer: a thread cannot run on core 4000"},
      {"latency --quick --core-dispatcher 4000", "--core-dispatcher: a thread cannot run on core 4000"},
      {"latency --quick --cores 4000,4001", "core 4000"}}},
    {"CoresOfDemoAndPipeline",
     true,
     {{"demo --config d3 --workers 2 --core-producer 4000", "--core-producer: a thread cannot run on core 4000"},
      {"demo --config d3 --workers 2 --core-consumer 4000", "--core-consumer: a thread cannot run on core 4000"},
      {"demo --config d3 --workers 2 --core-dispatcher 4000", "--core-dispatcher: a thread cannot run on core 4000"},
      {"demo --config d3 --workers 2 --core-workers 4000", "--core-workers: a thread cannot run on core 4000"},
      {"pipeline --core-producer 4000", "--core-producer: a thread cannot run on core 4000"},
      {"pipeline --core-consumer 4000", "--core-consumer: a thread cannot run on core 4000"},
      {"pipeline --core-dispatcher 4000", "--core-dispatcher: a thread cannot run on core 4000"},
      {"pipeline --core-workers 4000", "--core-workers: a thread cannot run on core 4000"}}},
    {"OutputFiles",
     false,
     {{"info --json " + kNowhere, "cannot write " + kNowhere},
      {"latency --quick --json " + kNowhere, "--json: cannot write " + kNowhere},
      {"latency --quick --html " + kNowhere, "--html: cannot write " + kNowhere},
      {"latency --quick --hgrm " + kNowhere, "--hgrm: cannot write " + kNowhere}}},
    {"OutputFilesOfDemo", true, {{"demo --config d3 --trace " + kNowhere, "--trace: cannot write " + kNowhere}}},
};
INSTANTIATE_TEST_SUITE_P(Program, Refusals, ::testing::ValuesIn(kRefusals),
                         [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::tools::test
