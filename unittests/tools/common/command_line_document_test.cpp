// SPDX-License-Identifier: Apache-2.0
// docs/command_line.md lists every option of every subcommand, and no other option.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/run_program.h"

#include <gtest/gtest.h>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace cudaq::realtime::tools::test {
namespace {

/// The subcommands of each option; "" is the program itself.
using option_table = std::map<std::string, std::set<std::string>>;

/// The options that the help text describes, in lines such as "  -h,--help   Print ...".
std::set<std::string> options_of(const std::string &help) {
  static const std::regex line(R"(^  (?:-\w,)?(--[a-z][a-z_-]*)(?:,--[a-z-]+)?(?: .*)?$)");
  std::set<std::string> names;
  std::istringstream lines(help);
  std::smatch found;
  for (std::string text; std::getline(lines, text);)
    if (std::regex_match(text, found, line))
      names.insert(found[1]);
  return names;
}

/// All commands below `parent` that have no subcommands. `parent` is "" for the program itself.
std::vector<std::string> commands_below(const std::string &parent) {
  static const std::regex line(R"(^  ([a-z]+) .*$)");
  std::vector<std::string> commands;
  std::istringstream lines(run_program(parent + " --help").out);
  std::smatch found;
  bool listed = false;
  for (std::string text; std::getline(lines, text); listed = listed ? !text.empty() : text == "Subcommands:") {
    if (!listed || !std::regex_match(text, found, line))
      continue;
    const std::string name = (parent.empty() ? "" : parent + " ") + found[1].str();
    const auto below = commands_below(name);
    commands.insert(commands.end(), below.begin(), below.end());
    if (below.empty())
      commands.push_back(name);
  }
  return commands;
}

option_table options_of_the_program(const std::vector<std::string> &commands) {
  option_table table;
  for (const std::string &command : commands)
    for (const std::string &option : options_of(run_program(command + " --help").out))
      table[option].insert(command);
  return table;
}

/// The commands in the column `in` of a row; `bench` means its three subcommands, `all` means all commands.
std::set<std::string> commands_named_in(const std::string &column, const std::vector<std::string> &commands) {
  static const std::regex word("`([a-z ]+)`");
  std::set<std::string> names;
  const bool all = column.find("all") != std::string::npos;
  for (const std::string &command : commands)
    if (all && !command.empty())
      names.insert(command);
  if (column.find("the program itself") != std::string::npos)
    names.insert("");
  for (std::sregex_iterator found(column.begin(), column.end(), word), end; found != end; ++found)
    for (const std::string &command : commands)
      if (command == (*found)[1] || (command.starts_with(std::string((*found)[1]) + " ") && command != "bench idle" &&
                                     command != "bench decoding"))
        names.insert(command);
  return names;
}

option_table options_of_the_page(const std::vector<std::string> &commands) {
  static const std::regex row(R"(^\| `(--[a-z_-]+)`[^|]*\|[^|]*\|[^|]*\|([^|]*)\|$)");
  option_table table;
  std::istringstream lines(read_file(CUDAQ_COMMAND_LINE_PAGE));
  std::smatch found;
  for (std::string text; std::getline(lines, text);)
    if (std::regex_match(text, found, row))
      if (const auto names = commands_named_in(found[2], commands);
          !names.empty()) // a command that this build does not have
        table[found[1]] = names;
  return table;
}

// Known failure 69.
TEST(CommandLine, IsTheOneThatItsPageDescribes) {
  if (run_program("demo --help").exit_code != 0)
    GTEST_SKIP() << "this build has no decoders, so no demo and no pipeline";
  std::vector<std::string> commands = commands_below("");
  EXPECT_GE(commands.size(), 7u);
  commands.emplace_back();
  const option_table program = options_of_the_program(commands), page = options_of_the_page(commands);
  EXPECT_GT(program.size(), 30u);
  for (const auto &[option, where] : program)
    EXPECT_EQ(page.contains(option) ? page.at(option) : std::set<std::string>{}, where) << option;
  for (const auto &[option, where] : page)
    EXPECT_TRUE(program.contains(option)) << option << " is on the page, but no command has it";
}

} // namespace
} // namespace cudaq::realtime::tools::test
