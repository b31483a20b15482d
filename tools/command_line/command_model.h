// SPDX-License-Identifier: Apache-2.0
// The command line as plain data. Help, completion, man pages and suggestions are made from it, so they cannot differ
// from the options that the program accepts.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cudaq::realtime::tools {

/// An option, or an argument without a name.
struct option_model {
  std::vector<std::string> names;   ///< as typed: "--json"; of an argument: its name in the help, "REPORT"
  std::string value;                ///< the kind of its value: "FILE"; "" for a flag
  std::vector<std::string> choices; ///< the only values; empty: others are possible
  std::string limits;               ///< "0 to 255"; "" if there are none
  std::string standard;             ///< the value without the option, "" if the help text describes it
  std::string text;                 ///< one line
  bool is_argument = false;
  bool value_may_miss = false; ///< as in --json
  bool is_list = false;        ///< several values, each a word

  /// The value is the path of a file or of a folder.
  [[nodiscard]] bool takes_path() const;
};

struct command_model {
  std::string program; ///< its name: "cudaq-realtime"
  std::string name;    ///< words after the program's name: "bench device"; "" for the program itself
  std::string text;    ///< one line
  std::string more;    ///< the text of the help after the options: explanations and examples
  std::vector<option_model> options;
  std::vector<command_model> commands;
};

/// The program and all of its subcommands. Options and subcommands that the help does not list are left out.
command_model describe_command_line(const CLI::App &program);

/// The subcommand that the words name. Throws usage_error, with similar names, if there is none.
const command_model &command_named(const command_model &program, const std::vector<std::string> &words);

/// The last word of the command's name: "device".
std::string last_word(const command_model &command);

/// The program, then each subcommand, then its subcommands.
std::vector<const command_model *> all_commands(const command_model &program);

/// The program's name and the command's words, joined by `separator`.
std::string program_name(const command_model &command, char separator);

} // namespace cudaq::realtime::tools
