// SPDX-License-Identifier: Apache-2.0
// What this build and this machine can do, and how to get what is missing.
#pragma once

#include "tools/common/report.h"

namespace cudaq::realtime::tools {

/// Returns an exit_code: kExitOk whatever is missing, kExitRefused when program and library do not fit together.
int run_info(const output &out);

} // namespace cudaq::realtime::tools
