// SPDX-License-Identifier: Apache-2.0
// What main.cpp and the subcommands tell each other. Needs no header of the command line library.
#pragma once

#include "tools/common/report.h"

#include <functional>

namespace CLI {
class App;
}

namespace cudaq::realtime::tools {

/// Runs a subcommand with the options that were read for it. Returns an exit_code; throws what its run_<name> throws.
using command_body = std::function<int(const output &)>;

/// The subcommand that the command line names. All subcommands store their output options here: only one of them is
/// parsed.
struct chosen_command {
  output_options output;
  command_body run; ///< empty until the command line is parsed
};

} // namespace cudaq::realtime::tools
