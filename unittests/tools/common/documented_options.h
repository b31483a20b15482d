// SPDX-License-Identifier: Apache-2.0
// Compares the options of a program with the table of its page.
#pragma once

#include "unittests/tools/common/run_program.h"

#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace cudaq::realtime::tools::test {

/// The subcommands of each option; "" is the program itself.
using option_table = std::map<std::string, std::set<std::string>>;

/// The options that the help text describes, in lines such as "  -h,--help   Print ...".
inline std::set<std::string> options_of(const std::string &help) {
  static const std::regex line(R"(^  (?:-\w,)?(--[a-z][a-z_-]*)(?:,--[a-z-]+)*(?: .*)?$)");
  std::set<std::string> names;
  std::istringstream lines(help);
  std::smatch found;
  for (std::string text; std::getline(lines, text);)
    if (std::regex_match(text, found, line))
      names.insert(found[1]);
  return names;
}

/// The subcommands of the program, and "" for the program itself.
inline std::vector<std::string> commands_of(const std::filesystem::path &program) {
  static const std::regex line(R"(^  ([a-z]+) .*$)");
  std::vector<std::string> commands{""};
  std::istringstream lines(run_program("--help", program).out);
  std::smatch found;
  bool listed = false;
  for (std::string text; std::getline(lines, text); listed = listed ? !text.empty() : text == "Subcommands:")
    if (listed && std::regex_match(text, found, line))
      commands.push_back(found[1]);
  return commands;
}

inline option_table options_of_the_program(const std::filesystem::path &program,
                                           const std::vector<std::string> &commands) {
  option_table table;
  for (const std::string &command : commands)
    for (const std::string &option : options_of(run_program(command + " --help", program).out))
      table[option].insert(command);
  return table;
}

/// The commands in the column `in` of a row; `all` means all commands.
inline std::set<std::string> commands_named_in(const std::string &column, const std::vector<std::string> &commands) {
  static const std::regex word("`([a-z]+)`");
  std::set<std::string> names;
  if (column.find("all") != std::string::npos)
    names.insert(commands.begin() + 1, commands.end());
  if (column.find("the program itself") != std::string::npos)
    names.insert("");
  for (std::sregex_iterator found(column.begin(), column.end(), word), end; found != end; ++found)
    if (std::ranges::find(commands, (*found)[1].str()) != commands.end())
      names.insert((*found)[1]);
  return names;
}

inline option_table options_of_the_page(const std::filesystem::path &page, const std::vector<std::string> &commands) {
  static const std::regex row(R"(^\| `(--[a-z_-]+)`[^|]*\|[^|]*\|[^|]*\|([^|]*)\|$)");
  option_table table;
  std::istringstream lines(read_file(page));
  std::smatch found;
  for (std::string text; std::getline(lines, text);)
    if (std::regex_match(text, found, row))
      if (const auto names = commands_named_in(found[2], commands);
          !names.empty()) // a command that this build does not have
        table[found[1]] = names;
  return table;
}

/// The table of the page lists every option of every subcommand, and no other option.
inline void expect_options_of_page(const std::filesystem::path &program_path, const std::filesystem::path &page_path) {
  const std::vector<std::string> commands = commands_of(program_path);
  EXPECT_GT(commands.size(), 2u);
  const option_table program = options_of_the_program(program_path, commands);
  const option_table page = options_of_the_page(page_path, commands);
  EXPECT_GT(program.size(), 10u);
  for (const auto &[option, where] : program)
    EXPECT_EQ(page.contains(option) ? page.at(option) : std::set<std::string>{}, where) << option;
  for (const auto &[option, where] : page)
    EXPECT_TRUE(program.contains(option)) << option << " is on the page, but no command has it";
}

} // namespace cudaq::realtime::tools::test
