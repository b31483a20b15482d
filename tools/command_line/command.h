// SPDX-License-Identifier: Apache-2.0
// What main.cpp and the subcommands exchange. Needs no header of the command line library.
#pragma once

#include "tools/common/report.h"

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cudaq::realtime::tools {

/// Runs a subcommand with its parsed options. Returns an exit_code; passes on exceptions of run_<name>.
using command_body = std::function<int(const output &)>;

/// The subcommand that the command line names. All subcommands share these output options, because only one subcommand
/// is parsed.
struct chosen_command {
  output_options output;
  command_body run;                      ///< empty until the command line is parsed
  std::vector<std::string> after_dashes; ///< the words after --
  bool takes_words = false;              ///< the subcommand passes these words on
  std::vector<std::string> notes;        ///< one line each for stderr, before the subcommand runs
};

} // namespace cudaq::realtime::tools
