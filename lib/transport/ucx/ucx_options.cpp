// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ucx/ucx_options.h"

#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"
#include "lib/transport/provider/option_parser.h"
#include "lib/transport/route/route_wire.h"

namespace cudaq::realtime::detail {

expected<> read_ucx_options(int argc, char *const *argv, ucx_options &out) {
  option_parser parser("ucx");
  parser.add_choice("--bind", {}, out.bind_address);
  parser.add_number("--port", 0, 65535, out.port);
  parser.add_number("--num-slots", 1, 65536, out.num_slots);
  parser.add_number("--slot-size", CUDAQ_RPC_HEADER_SIZE + 8, kMaxNodeSlotBytes, out.slot_size);
  parser.add_number("--max-routers", 1, 64, out.max_routers);
  parser.add_number("--silence-ms", 10, 3600000, out.silence_ms);
  parser.add_choice("--tls", {}, out.tls);
  if (expected<> result = parser.parse(argc, argv); result.failed())
    return result;
  out.ignored_words = parser.ignored_words();
  if (out.num_slots < out.max_routers)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "--num-slots %u: each of --max-routers %u needs one slot or more",
                       out.num_slots, out.max_routers);
  return {};
}

} // namespace cudaq::realtime::detail
