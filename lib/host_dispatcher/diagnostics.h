// SPDX-License-Identifier: Apache-2.0
// The text of dump_state that host and device path have in common.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

#include <string>

namespace cudaq::realtime::detail {

/// Adds a line, or a part of one, to a text: at most 255 characters.
[[gnu::format(printf, 2, 3)]] void append(std::string &text, const char *format, ...);

/// How requests are judged and ordered.
std::string describe_rules(const cudaq_dispatcher_options_t &options);
std::string describe_counters(const cudaq_dispatcher_stats_t &stats);

} // namespace cudaq::realtime::detail
