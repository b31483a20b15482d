// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line/command_options.h"
#include "tools/command_line/commands.h"
#include "tools/info/info.h"

namespace cudaq::realtime::tools {

void add_info(CLI::App &program, chosen_command &chosen) {
  CLI::App &info = *program.add_subcommand("info", "what this build and this machine can do, and how to get the rest");
  info.footer("Examples:\n  cudaq-realtime info\n  cudaq-realtime info --json | python3 -m json.tool");
  run_when_chosen(info, chosen, [](const output &out) { return run_info(out); });
}

} // namespace cudaq::realtime::tools
