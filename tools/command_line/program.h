// SPDX-License-Identifier: Apache-2.0
// A program whose command line consists of subcommands, each declared in a folder of its own.
#pragma once

#include "tools/command_line/command.h"

namespace cudaq::realtime::tools {

struct program_description {
  const char *name; ///< "cudaq-realtime"
  const char *text; ///< one line
  /// The end of the help; the meanings of the exit statuses follow it.
  const char *footer;
  /// For a user who types the program's name and nothing else.
  const char *first_steps;
  /// Calls the add_<name> of each subcommand, in the order of the help.
  void (*add_subcommands)(CLI::App &app, chosen_command &chosen);
};

/// The program that this executable is, or whose man pages it writes. Defined once in each executable with
/// tools/main.cpp or tools/man/man_pages.cpp.
const program_description &this_program();

/// Makes the command line of the program in `app`, which is empty. Both must outlive the parsing.
void declare_program(const program_description &program, CLI::App &app, chosen_command &chosen);

/// Parses the command line, runs the subcommand that it names, and returns the exit status. Errors become messages.
int run_program(const program_description &program, int argc, char **argv);

} // namespace cudaq::realtime::tools
