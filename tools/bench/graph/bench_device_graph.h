// SPDX-License-Identifier: Apache-2.0
// P8 of `bench graph`: graphs launched from the device, by the library's scheduler and by the least that can do it.
#pragma once

#include "tools/bench/device/bench_rigs.h"

namespace cudaq::realtime::tools {

/// One request at a time, 8 bytes there and back. publishes: the graph raises the ring's flag by itself.
bench_rig make_device_graph_rig(bench_session &session, bool publishes);

} // namespace cudaq::realtime::tools
