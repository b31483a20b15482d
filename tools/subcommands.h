// SPDX-License-Identifier: Apache-2.0
// The subcommands of the program cudaq-realtime.
#pragma once

#include "tools/command_line/program.h"

namespace cudaq::realtime::tools {

const program_description &cudaq_realtime();

} // namespace cudaq::realtime::tools
