// SPDX-License-Identifier: Apache-2.0
// `help` as JSON: every subcommand and option, for programs that write pages or check command lines.
#pragma once

#include "tools/command_line/command_model.h"
#include "tools/common/report.h"

namespace cudaq::realtime::tools {

/// name, text, more, options and subcommands.
json command_json(const command_model &command);

} // namespace cudaq::realtime::tools
