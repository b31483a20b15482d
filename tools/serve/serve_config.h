// SPDX-License-Identifier: Apache-2.0
// The configuration of the server as a file: read and built, for the start, a reload and --check.
#pragma once

#include "lib/qec/server/hosted_server.h"
#include "tools/serve/realtime_setup.h"
#include "tools/serve/serve_signals.h"

#include <optional>
#include <string>

namespace cudaq::realtime::tools {

struct config_text {
  std::string yaml;
  std::string folder; ///< of the file: where relative paths in it begin
};

/// Reads the file. `option` named it, for texts. Throws usage_error with the reason. It may take any time.
config_text read_config(const char *option, const std::string &path);

/// What the command line puts in place of sections of a configuration, and of one that is read again. It says so in the
/// log where a section is not used.
class section_overrides {
public:
  /// `record`: FILE or FILE:N; "": the section stays. `realtime` must live longer. Throws usage_error.
  section_overrides(const std::string &record, bool has_realtime, realtime_setup &realtime);
  /// By any thread.
  void apply(cudaq::qec::realtime::server_config &config) const;

private:
  cudaq::qec::realtime::record_config record_;
  const bool has_realtime_;
  realtime_setup &realtime_;
};

/// Reads the file and makes its decoders, on a thread of its own; `change` as of load_config. Throws usage_error.
/// Nothing if the end is wanted before that has ended: then its thread still runs.
std::optional<cudaq::qec::realtime::loaded_config> load_until_end(const char *option, const std::string &path,
                                                                  signal_events &signals,
                                                                  const cudaq::qec::realtime::config_change &change);

} // namespace cudaq::realtime::tools
