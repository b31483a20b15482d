// SPDX-License-Identifier: Apache-2.0
// Round trips of the host path, and of the floors on the same two cores. Both are measured in one run and alternate.
//
// Threads:
//
//   thread  started by                 owns                              waits  ends
//   client  is the main thread         the measurements; the client      polls  with the program
//                                      side of the ring
//   server  server_thread (floors) or  the server side of the ring or    polls  with each loop: ~server_thread, or
//           cudaq_dispatcher_start     of the exchange lines                    cudaq_dispatcher_stop
//
// Both poll without a pause. If there is only one core, both also yield at every poll.
#pragma once

#include "tools/common/machine.h"
#include "tools/common/measured_case.h"
#include "tools/common/report.h"

#include <cstdint>

namespace cudaq::realtime::tools {

struct latency_options : measuring_options {
  latency_options() {
    exchanges = 200000;
    rounds = 20;
  }

  thread_cores where; ///< producer: the client; dispatcher: the server; -1: the program chooses
  std::uint32_t slots = 64;
  bool in_place = false;
  bool handler_times = false; ///< two cases more: the dispatcher records the times of its handlers
};

/// Returns an exit_code. Throws usage_error and api_error.
int run_latency(const latency_options &options, const output &out);

} // namespace cudaq::realtime::tools
