// SPDX-License-Identifier: Apache-2.0
// The example's socket provider with another option for the size of a slot, --bytes=N: it ignores --slot-size, or
// refuses it after --refuse and --refuse-otherwise, with two statuses. With --hang its disconnect does not return.
#include "cudaq/realtime/daemon/bridge/bridge_types.h"

#define cudaq_realtime_get_bridge_interface example_interface
#include "docs/examples/transport/socket_provider.cpp"
#undef cudaq_realtime_get_bridge_interface

#include <string>
#include <unistd.h>
#include <vector>

static bool hangs;
static cudaq_status_t disconnect_or_hang(void *handle) {
  while (hangs)
    pause();
  return example_interface()->disconnect(handle);
}

static cudaq_status_t create_fixed(void **handle, int argc, char **argv) {
  std::vector<char *> kept;
  std::string size;
  cudaq_status_t refusal = CUDAQ_OK;
  bool sized = false;
  for (int i = 0; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--slot-size=", 0) == 0)
      sized = true;
    else if (word.rfind("--bytes=", 0) == 0)
      size = "--slot-size=" + word.substr(8);
    else if (word == "--refuse")
      refusal = CUDAQ_ERR_INVALID_ARG;
    else if (word == "--refuse-otherwise")
      refusal = CUDAQ_ERR_UNSUPPORTED;
    else if (word == "--hang")
      hangs = true;
    else
      kept.push_back(argv[i]);
  }
  if (sized && refusal != CUDAQ_OK)
    return fail(refusal, "there is no option --slot-size");
  if (!size.empty())
    kept.push_back(size.data());
  return create(handle, static_cast<int>(kept.size()), kept.data());
}

extern "C" CUDAQ_REALTIME_API cudaq_realtime_bridge_interface_t *cudaq_realtime_get_bridge_interface() {
  static cudaq_realtime_bridge_interface_t table = *example_interface();
  table.create = guarded<create_fixed>;
  table.disconnect = disconnect_or_hang;
  return &table;
}
