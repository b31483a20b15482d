// SPDX-License-Identifier: Apache-2.0
// What the program says to a user who does not know it yet, or mistypes.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/documented_options.h"
#include "unittests/tools/common/run_program.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <regex>
#include <sstream>

namespace cudaq::realtime::tools::test {
namespace {

TEST(CommandLineHelp, TeachesTheFirstStepsWithoutArguments) {
  const program_result r = run_program("");
  EXPECT_EQ(r.exit_code, 2) << "an empty variable in a script is a mistake";
  EXPECT_EQ(r.out, "");
  for (const char *text : {"cudaq-realtime doctor", "cudaq-realtime help", "a subcommand is missing"})
    EXPECT_TRUE(contains(r.err, text)) << text << "\n" << r.err;
}

TEST(CommandLineHelp, IsTheSameAsASubcommandAndAsAnOption) {
  for (const std::string command : {"", "latency", "info", "help"}) {
    const program_result command_help = run_program("help " + command), option = run_program(command + " --help");
    EXPECT_EQ(command_help.exit_code, 0) << command_help.err;
    EXPECT_EQ(option.exit_code, 0) << option.err;
    EXPECT_EQ(command_help.out, option.out) << command;
    EXPECT_TRUE(contains(command_help.out, "Usage: cudaq-realtime" + (command.empty() ? "" : " " + command)))
        << command_help.out;
  }
}

TEST(CommandLineHelp, ListsEveryOptionAsJson) {
  const auto help = run_good_program("help latency --json").at("help");
  EXPECT_EQ(help.at("name"), "latency");
  const auto &options = help.at("options");
  const auto slots = std::find_if(options.begin(), options.end(),
                                  [](const auto &o) { return o.at("names") == nlohmann::json::array({"--slots"}); });
  ASSERT_NE(slots, options.end());
  EXPECT_EQ(slots->at("default"), "64");
  EXPECT_EQ(slots->at("limits"), "1 to 1048576");
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

// docs/command_line.md lists every option of every subcommand, and no other option.

// Known failure 69.
TEST(CommandLine, IsTheOneThatItsPageDescribes) {
  if (run_program("demo --help").exit_code != 0)
    GTEST_SKIP() << "this build has no decoders, so no demo and no pipeline";
  expect_options_of_page(CUDAQ_TOOL_PATH, CUDAQ_COMMAND_LINE_PAGE);
}

// Old names of options: they work as before, the help does not list them, and each prints one line.

std::string own_shots() {
  const std::string model = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003";
  return " --dem " + model + ".dem --in " + model + ".dets.b8 --decoder lookup --shots 50 ";
}

/// Runs the program, which must print exactly this note, and returns its report.
nlohmann::json expect_note(const std::string &arguments, const std::string &note) {
  const program_result r = run_program(arguments + " --json");
  EXPECT_EQ(r.exit_code, 0) << arguments << "\n" << r.err;
  EXPECT_TRUE(contains(r.err, note)) << arguments << "\n" << r.err;
  EXPECT_EQ(std::ranges::count(r.err, '\n'), 1) << arguments << "\n" << r.err;
  return r.json();
}

// Known failure 69.
TEST(OldNames, RoundsAreRepeats) {
  const auto old = expect_note("latency --exchanges 4000 --rounds 3",
                               "cudaq-realtime latency: --rounds is an old name; write --repeats 3\n");
  EXPECT_EQ(old.at("cases").at(0).at("round_p50_ns").size(), 3u);
  EXPECT_EQ(run_good_program("latency --exchanges 4000 --repeats 3 --json").at("cases").at(0).at("round_p50_ns").size(),
            3u);
}

TEST(OldNames, CoresOfLatencyAreTheCoresOfItsThreads) {
  const auto cores = run_good_program("info --json").at("machine").at("allowed_cores");
  const int a = cores.front(), b = cores.back();
  const std::string text = "--core-producer " + std::to_string(a) + " --core-dispatcher " + std::to_string(b);
  const auto old = expect_note("latency --quick --cores " + std::to_string(a) + "," + std::to_string(b),
                               "--cores is an old name; write " + text + "\n");
  const auto now = run_good_program("latency --quick --json " + text);
  for (const auto &report : {old, now}) {
    EXPECT_EQ(report.at("method").at("client_core"), a);
    EXPECT_EQ(report.at("method").at("server_core"), b);
  }
  // One of them alone: the other thread gets another core, if there is one.
  const auto one = run_good_program("latency --quick --json --core-dispatcher " + std::to_string(a)).at("method");
  EXPECT_EQ(one.at("server_core"), a);
  EXPECT_EQ(one.at("client_core") == a, cores.size() == 1);
}

TEST(OldNames, ACadenceIsARateAndADistanceAConfiguration) {
  if (!has_decoders())
    GTEST_SKIP() << "this build has no decoders";
  const auto old =
      expect_note("demo --distance 3 --decoder lookup --shots 50", "--distance is an old name; write --config d3\n");
  EXPECT_EQ(old.at("data").at("name"), "surface_z_d3_p0.005");
  const auto demo = expect_note("demo --config d3 --decoder lookup --shots 50 --cadence-us 40",
                                "--cadence-us is an old name; write --rate 25000\n");
  EXPECT_EQ(demo.at("passes").size(), 1u);
  EXPECT_EQ(demo.at("passes").at(0).at("cadence_ns"), 40000);
  const auto quick = expect_note("demo --config d3 --decoder lookup --shots 50 --cadence-us 0", "write --rate 0\n");
  EXPECT_EQ(quick.at("passes").at(0).at("cadence_ns"), 0);
  const auto rate = run_good_program("demo --json --config d3 --decoder lookup --shots 50 --rate 25000");
  EXPECT_EQ(rate.at("passes").at(0).at("cadence_ns"), 40000);
  EXPECT_EQ(expect_note("pipeline" + own_shots() + "--cadence-us 100", "write --rate 10000\n").at("config").at("rate"),
            10000);
}

TEST(OldNames, AnEngineIsAPredecoder) {
  if (!has_decoders())
    GTEST_SKIP() << "this build has no decoders";
  const auto old =
      expect_note("pipeline" + own_shots() + "--engine auto", "--engine is an old name; write --predecoder auto\n");
  EXPECT_NE(old.at("config").at("choice"), "");
  expect_note("pipeline" + own_shots() + "--workers 0", "--workers 0 is an old form; write --workers auto\n");
}

// Rows of the page: | `old` | `new` | `command`, `command` |
TEST(OldNames, AreThoseOfThePage) {
  static const std::regex row(R"(^\| `(--[a-z-]+)[^`]*` \| `[^|]*\|([^|]*)\|$)"), word("`([a-z ]+)`");
  std::istringstream lines(read_file(CUDAQ_COMMAND_LINE_PAGE));
  std::smatch found;
  std::size_t rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!std::regex_match(line, found, row))
      continue;
    ++rows;
    const std::string old = found[1], commands = found[2];
    for (std::sregex_iterator c(commands.begin(), commands.end(), word), end; c != end; ++c) {
      const std::string command = (*c)[1];
      const program_result help = run_program(command + " --help");
      if (help.exit_code != 0)
        continue;               // no decoders in this build
      if (old != "--workers") { // its name is still in use, but not this value
        EXPECT_FALSE(contains(help.out, old + " ")) << command << " lists " << old;
      }
      const program_result without_value = run_program(command + " " + old);
      EXPECT_EQ(without_value.exit_code, 2);
      EXPECT_FALSE(contains(without_value.err, "there is no option")) << command << " " << old;
    }
  }
  EXPECT_GE(rows, 6u);
}

} // namespace
} // namespace cudaq::realtime::tools::test
