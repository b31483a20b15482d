// SPDX-License-Identifier: Apache-2.0
// Regular dispatch kernels that look at the flags of their ring in other ways than the library's. Plain C++.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"

#include <cstdint>
#include <span>

namespace cudaq::realtime::test {

/// `flags`: most flags that a look reads while no request is there. `looks`: empty looks in a row, before the loop does
/// anything else.
struct look_shape {
  std::uint32_t flags, looks;
  cudaq_dispatch_launch_fn_v2_t launch; ///< for a dispatcher with FIFO ordering that has its ring alone
};

/// Sums of GPU cycles.
struct stage_cycles {
  unsigned long long requests;         ///< served alone
  long long to_fetch;                  ///< from the flag that a look has found to the load of the frame
  long long to_handler_end;            ///< frame read, judged, handler called
  long long to_frame_stored;           ///< answer frame stored
  long long to_given_back;             ///< fences, tx, rx = 0, laps
  unsigned long long batched, batches; ///< requests of looks that found several, and publications of them
  long long to_first_call;             ///< from the look, or from the publication before, to the first handler
  long long to_last_call;              ///< to the last one
  long long to_publication;            ///< to the first store of lane 0: the last handler, all answers
  long long to_published;              ///< fences, tx, rx = 0, laps
};
/// The library's shape, with a loop that records its stages; one dispatcher at a time.
const look_shape &staged_loop();
/// Of the last dispatcher that has ended.
cudaError_t read_stages(stage_cycles &out);

/// Each shape once; the library's is the first.
std::span<const look_shape> look_shapes();

} // namespace cudaq::realtime::test
