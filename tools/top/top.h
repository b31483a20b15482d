// SPDX-License-Identifier: Apache-2.0
// The subcommand top: shows a running server.
#pragma once

#include "tools/common/report.h"

#include <cstdint>
#include <string>

namespace cudaq::realtime::tools {

struct top_options {
  std::string counters;    ///< the Unix socket of `serve --counters`
  double interval_s = 1;   ///< between two readings
  std::uint64_t count = 0; ///< readings that are shown; 0: until Ctrl-C, and none is kept for the report
};

/// Shows the server until Ctrl-C, or `count` times, and returns an exit_code. On a terminal the same lines are written
/// again and again. Throws usage_error if no server can be read.
int run_top(const top_options &options, const output &out);

} // namespace cudaq::realtime::tools
