// SPDX-License-Identifier: Apache-2.0
// The parts of the dump_state text that host and device path share.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"

#include <string>

namespace cudaq::realtime::detail {

/// Appends formatted text, at most 255 characters.
[[gnu::format(printf, 2, 3)]] void append(std::string &text, const char *format, ...);

/// One line: how requests are judged and ordered.
std::string describe_rules(const cudaq_dispatcher_options_t &options);
std::string describe_counters(const cudaq_dispatcher_stats_t &stats);

} // namespace cudaq::realtime::detail
