// SPDX-License-Identifier: Apache-2.0
// The help of a subcommand as a page for man(1).
#pragma once

#include "tools/command_line/command_model.h"

#include <string>

namespace cudaq::realtime::tools {

/// The page in roff, with the macros of man(7). It has no date, so that each build writes the same bytes.
std::string man_page(const command_model &program, const command_model &command);

} // namespace cudaq::realtime::tools
