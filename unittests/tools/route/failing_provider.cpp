// SPDX-License-Identifier: Apache-2.0
// The example's socket provider, whose connect fails.
#include "cudaq/realtime/daemon/bridge/bridge_types.h"

#define cudaq_realtime_get_bridge_interface example_interface
#include "docs/examples/transport/socket_provider.cpp"
#undef cudaq_realtime_get_bridge_interface

extern "C" CUDAQ_REALTIME_API cudaq_realtime_bridge_interface_t *cudaq_realtime_get_bridge_interface() {
  static cudaq_realtime_bridge_interface_t table = *example_interface();
  table.connect = [](void *) { return fail(CUDAQ_ERR_INTERNAL, "the provider of the test has no peer"); };
  return &table;
}
