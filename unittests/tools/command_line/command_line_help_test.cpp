// SPDX-License-Identifier: Apache-2.0
// What the program says to a user who does not know it yet, or mistypes.
#include "unittests/tools/common/run_program.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

void expect_suggestion(const std::string &arguments, const std::string &text) {
  const program_result r = run_program(arguments);
  EXPECT_EQ(r.exit_code, 2) << arguments << "\n" << r.err;
  EXPECT_TRUE(contains(r.err, text)) << arguments << "\n" << r.err;
  EXPECT_TRUE(r.err.starts_with("cudaq-realtime")) << r.err;
  EXPECT_EQ(r.out, "") << arguments;
}

TEST(CommandLineHelp, SuggestsSubcommands) {
  expect_suggestion("latenci", "there is no subcommand \"latenci\". Did you mean latency?");
  expect_suggestion("zzzzzzzz", ", latency, doctor, info");
  expect_suggestion("help docter", "Did you mean doctor?");
}

// Known failure 69.
TEST(CommandLineHelp, SuggestsOptions) {
  expect_suggestion("latency --exchange 5", "there is no option --exchange. Did you mean --exchanges?");
  expect_suggestion("latency --exchnages=5", "there is no option --exchnages. Did you mean --exchanges?");
  expect_suggestion("--versoin", "Did you mean --version?");
  expect_suggestion("latency --jsn", "cudaq-realtime latency: there is no option --jsn.");
  expect_suggestion("latency --frobnicate", "there is no option --frobnicate.\nOptions and examples: cudaq-realtime "
                                            "latency --help");
}

TEST(CommandLineHelp, NamesTheSubcommandsThatHaveTheOption) {
  expect_suggestion("info --exchanges 3", "there is no option --exchanges. It is an option of latency.");
  expect_suggestion("latency more words", "\"more\" is not an option");
}

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

} // namespace
} // namespace cudaq::realtime::tools::test
