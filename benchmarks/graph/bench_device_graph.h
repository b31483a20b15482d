// SPDX-License-Identifier: Apache-2.0
// Graphs launched from the device, by the library's scheduler and by a minimal scheduler.
#pragma once

#include "benchmarks/device/bench_rigs.h"

namespace cudaq::realtime::tools {

/// One request at a time, 8 bytes in each direction. `publishes`: the graph sets the ring's tx flag; otherwise the
/// scheduler does. `memory`: of the ring and of the floor's request.
bench_rig make_device_graph_rig(bench_session &session, bool publishes, cudaq_memory_kind_t memory);

} // namespace cudaq::realtime::tools
