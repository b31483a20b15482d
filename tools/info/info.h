// SPDX-License-Identifier: Apache-2.0
// The abilities of this build and this machine, and how to get the missing ones.
#pragma once

#include "tools/common/report.h"

namespace cudaq::realtime::tools {

/// Returns an exit_code: kExitRefused if the library's version does not match the program, else kExitOk, also if
/// something is missing.
int run_info(const output &out);

} // namespace cudaq::realtime::tools
