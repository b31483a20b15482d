// SPDX-License-Identifier: Apache-2.0
// What the program says to a user who does not know it yet, or mistypes.
#include "unittests/tools/common/run_program.h"

#include <gtest/gtest.h>

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

} // namespace
} // namespace cudaq::realtime::tools::test
