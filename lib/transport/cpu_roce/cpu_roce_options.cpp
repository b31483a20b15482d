// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/cpu_roce/cpu_roce_options.h"

#include "lib/transport/provider/option_parser.h"

#include <arpa/inet.h>

namespace cudaq::realtime::detail {
namespace {

constexpr std::uint32_t kMaxPages = 64;   // of a sensor bridge
constexpr std::uint32_t kMaxSlots = 4096; // adapters have receive queues of at least twice this length
constexpr std::uint32_t kSlotUnit = 64;   // then slots follow each other without a gap, as peers assume
constexpr std::uint32_t kMaxSlotBytes = 1u << 20;
constexpr std::uint64_t kMaxRingBytes = std::uint64_t{1} << 30;
constexpr std::uint32_t k24Bits = (1u << 24) - 1;

expected<> address_of(const char *option, const std::string &text, std::uint32_t &out) {
  in_addr address{};
  if (inet_pton(AF_INET, text.c_str(), &address) != 1 || address.s_addr == 0 || IN_MULTICAST(ntohl(address.s_addr)))
    return make_reason(CUDAQ_ERR_INVALID_ARG, "%s '%s': one IPv4 address is accepted", option, text.c_str());
  out = ntohl(address.s_addr);
  return {};
}

/// Options that say nothing in the other mode or shape are refused: the caller expects an effect.
expected<> check_modes(const option_parser &parser, const cpu_roce_options &o) {
  if (o.sensor_bridge && !parser.given("--peer-ip"))
    return {CUDAQ_ERR_INVALID_ARG, "--peer-ip: it is missing; --qp_config=hsb_fpga needs the sensor bridge's address"};
  for (const char *const rendezvous_only : {"--port", "--listen-ip"})
    if (o.sensor_bridge && parser.given(rendezvous_only))
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s: with --qp_config=hsb_fpga there is no rendezvous",
                         rendezvous_only);
  for (const char *const bridge_only : {"--peer-ip", "--remote-qp"})
    if (!o.sensor_bridge && parser.given(bridge_only))
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s: only with --qp_config=hsb_fpga; in a rendezvous the peer tells it",
                         bridge_only);
  for (const char *const ring_only : {"--wait", "--core"})
    if (o.unified && parser.given(ring_only))
      return make_reason(CUDAQ_ERR_INVALID_ARG,
                         "%s: with --unified the provider has no thread for requests; set this of the dispatcher",
                         ring_only);
  return {};
}

expected<> check(const option_parser &parser, cpu_roce_options &o) {
  if (expected<> result = check_modes(parser, o); result.failed())
    return result;
  if (o.sensor_bridge && o.num_slots > kMaxPages)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "--num-slots %u: with --qp_config=hsb_fpga at most %u are accepted",
                       o.num_slots, kMaxPages);
  if (o.slot_size % kSlotUnit != 0)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "--slot-size %u: a multiple of %u is accepted", o.slot_size, kSlotUnit);
  if (std::uint64_t{o.num_slots} * o.slot_size > kMaxRingBytes)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "--num-slots %u, --slot-size %u: together at most %llu bytes are accepted", o.num_slots,
                       o.slot_size, static_cast<unsigned long long>(kMaxRingBytes));
  if (!parser.given("--frame-size"))
    o.frame_size = o.slot_size;
  if (o.frame_size > o.slot_size)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "--frame-size %u: an answer is sent from a slot of --slot-size %u",
                       o.frame_size, o.slot_size);
  if (!parser.given("--listen-ip"))
    o.listen_ip = o.local_ip;
  if (expected<> result = address_of("--local-ip", o.local_ip, o.local_address); result.failed())
    return result;
  return o.sensor_bridge ? address_of("--peer-ip", o.peer_ip, o.peer_address) : expected<>{};
}

} // namespace

expected<> parse_cpu_roce_options(int argc, char *const *argv, cpu_roce_options &out) {
  std::string mode = "rendezvous", type = "uc", mtu = "4096", wait = "yield";
  option_parser parser("cpu_roce");
  parser.add_choice("--device", {}, out.device);
  parser.add_number("--ib-port", 1, 255, out.ib_port);
  parser.add_choice("--local-ip", {}, out.local_ip);
  parser.add_choice("--listen-ip", {}, out.listen_ip);
  parser.add_number("--port", 0, 65535, out.port);
  parser.add_number("--num-slots", 1, kMaxSlots, out.num_slots);
  parser.add_number("--slot-size", kSlotUnit, kMaxSlotBytes, out.slot_size);
  parser.add_number("--frame-size", CUDAQ_RPC_HEADER_SIZE, kMaxSlotBytes, out.frame_size);
  for (const char *const spelling : {"--qp_config", "--qp-config"}) // the first one is that of the existing scripts
    parser.add_choice(spelling, {"rendezvous", "hsb_fpga"}, mode);
  parser.add_choice("--peer-ip", {}, out.peer_ip);
  parser.add_number("--remote-qp", 0, k24Bits, out.remote_qp);
  parser.add_choice("--qp-type", {"uc", "rc"}, type);
  parser.add_choice("--mtu", {"256", "512", "1024", "2048", "4096"}, mtu);
  parser.add_choice("--wait", {"spin", "yield", "block"}, wait);
  parser.add_number("--core", 0, 1023, out.core);
  parser.add_flag("--unified", out.unified);
  parser.add_flag("--pinned-rings", out.pinned_rings);
  if (expected<> result = parser.parse(argc, argv); result.failed())
    return result;
  out.ignored_words = parser.ignored_words();
  out.sensor_bridge = mode == "hsb_fpga";
  out.reliable = type == "rc";
  out.mtu = static_cast<std::uint32_t>(std::stoul(mtu));
  out.wait = wait == "spin" ? CUDAQ_WAIT_SPIN : wait == "block" ? CUDAQ_WAIT_BLOCK : CUDAQ_WAIT_SPIN_YIELD;
  return check(parser, out);
}

} // namespace cudaq::realtime::detail
