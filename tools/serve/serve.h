// SPDX-License-Identifier: Apache-2.0
// The subcommand serve: the decoding server over a transport. docs/transport/server.md.
#pragma once

#include "tools/common/report.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

struct serve_options {
  std::string config;                        ///< file
  std::string check;                         ///< file in its place: read and built, but not served; "": none
  std::string transport;                     ///< name or path of a provider; "": as the configuration says
  std::vector<std::string> provider_options; ///< empty: as the configuration says, if it names the same transport
  double timeout_s = 0;                      ///< ends after this time without a request; 0: no limit
  double end_limit_s = 10;                   ///< for the requests that were accepted, at the end
  double read_limit_s = 1;                   ///< of end_limit_s: for the corrections that were not read
  std::uint32_t decoder_threads = 0;         ///< that the decoders share; 0: as many as cores, at least 8
  std::string wait = "auto";
  std::string counters;     ///< path of a Unix socket; "": none
  int prometheus_port = -1; ///< of 127.0.0.1; -1: none, 0: any free one
  std::string realtime;     ///< fields in place of the section `realtime` of the configuration; "": as it says
  std::string record;       ///< FILE or FILE:N in place of the section `record`; "": as it says
  bool schema = false;      ///< prints the JSON schema of a configuration, and nothing else
};

/// Serves until SIGTERM, SIGINT or the timeout, and returns an exit_code. Throws usage_error and api_error.
int run_serve(const serve_options &options, const output &out);

} // namespace cudaq::realtime::tools
