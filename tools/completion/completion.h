// SPDX-License-Identifier: Apache-2.0
// Scripts that complete subcommands, options and values of the command line in a shell. They hold the whole command
// line, so a key press starts no program.
#pragma once

#include "tools/command_line/command_model.h"

#include <string>

namespace cudaq::realtime::tools {

std::string bash_completion(const command_model &program);
std::string zsh_completion(const command_model &program);
std::string fish_completion(const command_model &program);

} // namespace cudaq::realtime::tools
