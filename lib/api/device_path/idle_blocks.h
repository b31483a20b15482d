// SPDX-License-Identifier: Apache-2.0
// Blocks and threads of a dispatcher's configuration that the library's kernels do not use.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"

#include <string>

namespace cudaq::realtime::detail {

/// A line for dump_state, or an empty text if the kernel uses all blocks of the configuration.
std::string describe_idle_blocks(const cudaq_dispatcher_config_t &config, const cudaq_dispatcher_options_t &options);

} // namespace cudaq::realtime::detail
