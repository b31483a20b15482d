// SPDX-License-Identifier: Apache-2.0
// What this build and this machine can do, and how to get what is missing.
#pragma once

#include "tools/common/report.h"

namespace cudaq::realtime::tools {

/// Returns an exit_code: kExitRefused if the library's version does not match the program, else kExitOk, also if
/// something is missing.
int run_info(const output &out);

} // namespace cudaq::realtime::tools
