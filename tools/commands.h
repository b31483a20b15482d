// SPDX-License-Identifier: Apache-2.0
// The subcommands: one add_<name> for each folder, in <name>/<name>_command.cpp. docs/command_line.md says how to add
// one.
#pragma once

#include "tools/common/command.h"

namespace cudaq::realtime::tools {

// Each declares name, help text and options of its subcommand, and stores in `chosen` what runs when the command line
// names it. `program` and `chosen` must outlive the parsing. The program's help lists them in the order of the calls.
void add_demo(CLI::App &program, chosen_command &chosen);
void add_pipeline(CLI::App &program, chosen_command &chosen);
void add_latency(CLI::App &program, chosen_command &chosen);
void add_bench(CLI::App &program, chosen_command &chosen);
void add_info(CLI::App &program, chosen_command &chosen);

} // namespace cudaq::realtime::tools
