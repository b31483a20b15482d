// SPDX-License-Identifier: Apache-2.0
// The subcommands: one add_<name> for each folder, in <name>/<name>_command.cpp. docs/command_line.md describes how to
// add one.
#pragma once

#include "tools/command_line/command.h"

namespace cudaq::realtime::tools {

// Each function declares the name, the help text and the options of its subcommand. When the command line names that
// subcommand, parsing stores the function that runs it in `chosen`. `program` and `chosen` must outlive the parsing.
// The program's help lists the subcommands in the order of these calls.
void add_demo(CLI::App &program, chosen_command &chosen);
void add_decode(CLI::App &program, chosen_command &chosen);
void add_learn(CLI::App &program, chosen_command &chosen);
void add_serve(CLI::App &program, chosen_command &chosen);
void add_replay(CLI::App &program, chosen_command &chosen);
void add_route(CLI::App &program, chosen_command &chosen);
void add_top(CLI::App &program, chosen_command &chosen);
void add_pipeline(CLI::App &program, chosen_command &chosen);
void add_latency(CLI::App &program, chosen_command &chosen);
void add_doctor(CLI::App &program, chosen_command &chosen);
void add_emulate(CLI::App &program, chosen_command &chosen);
void add_info(CLI::App &program, chosen_command &chosen);
void add_completion(CLI::App &program, chosen_command &chosen);
/// `example`: a subcommand for the examples of the help.
void add_help(CLI::App &program, chosen_command &chosen, const char *example);

} // namespace cudaq::realtime::tools
