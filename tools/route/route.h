// SPDX-License-Identifier: Apache-2.0
// The subcommand route: requests of one transport, spread over many nodes. docs/transport/route.md.
#pragma once

#include "tools/common/report.h"

#include <string>
#include <vector>

namespace cudaq::realtime::tools {

struct route_options {
  std::string config;                        ///< file
  std::string transport;                     ///< name or path of a provider; "": as the configuration says
  std::vector<std::string> provider_options; ///< empty: as the configuration says, if it names the same transport
  std::string wait = "auto";
  std::string counters;     ///< path of a Unix socket; "": none
  int prometheus_port = -1; ///< of 127.0.0.1; -1: none, 0: any free one
  bool schema = false;      ///< prints the JSON schema of a configuration, and nothing else
};

/// Routes until SIGTERM or SIGINT, and returns an exit_code. Throws usage_error and api_error.
int run_route(const route_options &options, const output &out);

} // namespace cudaq::realtime::tools
