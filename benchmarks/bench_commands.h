// SPDX-License-Identifier: Apache-2.0
// The subcommands of cudaq-realtime-bench, as tools/command_line/commands.h has those of cudaq-realtime.
#pragma once

#include "tools/command_line/command.h"

namespace cudaq::realtime::tools {

/// Those that measure.
void add_benchmarks(CLI::App &program, chosen_command &chosen);
void add_compare(CLI::App &program, chosen_command &chosen);

} // namespace cudaq::realtime::tools
