// SPDX-License-Identifier: Apache-2.0
// The subcommand replay: a recording of a server's requests is shown, or played again, and the answers are compared.
// docs/transport/recorder.md.
#pragma once

#include "tools/emulate/emulate.h"

#include <cstdint>
#include <string>

namespace cudaq::realtime::tools {

struct replay_options {
  std::string file;
  std::string config;       ///< of the decoders in this process; "": none
  std::string transport;    ///< to a server in another process; "": none. Without both the recording is only shown
  bool as_recorded = false; ///< each request at its time; else as soon as the one before it is answered
  emulate_options link;     ///< of these the members of the transport, and timeout_s
};

/// Returns an exit_code. Throws usage_error and api_error.
int run_replay(const replay_options &options, const output &out);

} // namespace cudaq::realtime::tools
