// SPDX-License-Identifier: Apache-2.0
// The configuration of the server as a file: read and built, for the start, a reload and --check.
#pragma once

#include "lib/qec/server/server_config.h"
#include "tools/serve/serve_signals.h"

#include <optional>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

struct loaded_config {
  cudaq::qec::realtime::server_config config;
  std::vector<cudaq::qec::realtime::decoder_setup> setups;
};

/// Reads the file and builds the decoders. `option` named it, for texts. Throws usage_error with the reason. It may
/// take any time, in the file system and in plug-ins.
loaded_config load_config(const char *option, const std::string &path);

/// load_config() on a thread of its own. Nothing if the end is wanted before it has ended: then its thread still runs.
std::optional<loaded_config> load_until_end(const char *option, const std::string &path, signal_events &signals);

} // namespace cudaq::realtime::tools
