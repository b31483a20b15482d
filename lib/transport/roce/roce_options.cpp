// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/roce_options.h"

#include "lib/transport/roce/roce_packet.h"

namespace cudaq::realtime::detail {

expected<> parse_roce_options(int argc, char *const *argv, roce_options &out) {
  roce_wire_options &wire = out.wire;
  out.common.provider = "roce";
  out.common.port = kRocePort;
  wire.peer_port = kRocePort;
  std::string icrc = "check", mtu = std::to_string(kLargestMtu);
  option_reader reader(out.common, true);
  reader.add_number("--qp", 0, k24Bits, wire.own_qp);
  reader.add_number("--remote-qp", 0, k24Bits, wire.peer_qp);
  reader.add_number("--rkey", 0, UINT32_MAX, wire.rkey);
  reader.add_number("--peer-port", 0, 65535, wire.peer_port);
  reader.add_choice("--mtu", {"256", "512", "1024", "2048", "4096"}, mtu);
  reader.add_choice("--icrc", {"check", "full", "off"}, icrc);
  if (expected<> result = reader.read(argc, argv); result.failed())
    return result;
  constexpr std::uint32_t kMaxPages = 4096; // the number of a page has 12 bits in the immediate
  if (out.common.num_slots > kMaxPages)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "--num-slots %u: over RoCE at most %u are accepted", out.common.num_slots,
                       kMaxPages);
  wire.slot_size = out.common.slot_size;
  wire.num_slots = out.common.num_slots;
  wire.max_peers = out.common.max_peers;
  wire.peer_timeout = std::chrono::milliseconds(out.common.peer_timeout_ms);
  wire.mtu = static_cast<std::uint32_t>(std::stoul(mtu));
  wire.icrc = icrc == "full" ? icrc_policy::full : icrc == "off" ? icrc_policy::off : icrc_policy::check;
  return {};
}

} // namespace cudaq::realtime::detail
