// SPDX-License-Identifier: Apache-2.0
// A provider whose table is wrong in the way that the environment variable DOUBLE_TABLE names: "null", "throw",
// "throw-int", "version=N", "missing=ENTRY". Without the variable the table is complete, and create is refused.
#include "cudaq/realtime/daemon/bridge/bridge_types.h"

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace {

using handle_t = cudaq_realtime_bridge_handle_t;
cudaq_status_t refuse_create(handle_t *, int, char **) { return CUDAQ_ERR_UNSUPPORTED; }
cudaq_status_t accept(handle_t) { return CUDAQ_OK; }
cudaq_status_t no_context(handle_t, cudaq_realtime_transport_context_t, void *) { return CUDAQ_ERR_UNSUPPORTED; }

} // namespace

extern "C" CUDAQ_REALTIME_API cudaq_realtime_bridge_interface_t *cudaq_realtime_get_bridge_interface() {
  static cudaq_realtime_bridge_interface_t table;
  table = {3, refuse_create, accept, no_context, accept, accept, accept, nullptr, nullptr, nullptr, nullptr};
  const char *const variable = std::getenv("DOUBLE_TABLE");
  const std::string wrong = variable == nullptr ? "" : variable;
  if (wrong == "null")
    return nullptr;
  if (wrong == "throw")
    throw std::runtime_error("no table today");
  if (wrong == "throw-int")
    throw 7;
  if (wrong.rfind("version=", 0) == 0)
    table.version = std::atoi(wrong.c_str() + 8);
  const auto forget = [&wrong](const char *entry, auto &function) {
    if (wrong == std::string("missing=") + entry)
      function = nullptr;
  };
  forget("create", table.create);
  forget("destroy", table.destroy);
  forget("get_transport_context", table.get_transport_context);
  forget("connect", table.connect);
  forget("launch", table.launch);
  forget("disconnect", table.disconnect);
  return &table;
}
