// SPDX-License-Identifier: Apache-2.0
// The example's socket provider with slots of 256 bytes only: it ignores --slot-size, or refuses it after --refuse.
#include "cudaq/realtime/daemon/bridge/bridge_types.h"

#define cudaq_realtime_get_bridge_interface example_interface
#include "docs/examples/transport/socket_provider.cpp"
#undef cudaq_realtime_get_bridge_interface

#include <vector>

static cudaq_status_t create_fixed(void **handle, int argc, char **argv) {
  std::vector<char *> kept;
  bool refuses = false, sized = false;
  for (int i = 0; i < argc; ++i) {
    const bool is_size = std::strncmp(argv[i], "--slot-size=", 12) == 0,
               is_refuse = std::strcmp(argv[i], "--refuse") == 0;
    sized = sized || is_size;
    refuses = refuses || is_refuse;
    if (!is_size && !is_refuse)
      kept.push_back(argv[i]);
  }
  if (refuses && sized)
    return fail(CUDAQ_ERR_INVALID_ARG, "there is no option --slot-size");
  return create(handle, static_cast<int>(kept.size()), kept.data());
}

extern "C" CUDAQ_REALTIME_API cudaq_realtime_bridge_interface_t *cudaq_realtime_get_bridge_interface() {
  static cudaq_realtime_bridge_interface_t table = *example_interface();
  table.create = guarded<create_fixed>;
  return &table;
}
