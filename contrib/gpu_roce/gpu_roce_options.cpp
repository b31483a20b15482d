// SPDX-License-Identifier: Apache-2.0
#include "contrib/gpu_roce/gpu_roce_options.h"

#include "lib/transport/provider/option_parser.h"

#include <arpa/inet.h>

namespace cudaq::realtime::detail {
namespace {

/// The sensor bridge addresses pages in units of this.
constexpr std::uint32_t kPageUnit = 128;

expected<> refuse(const char *text) { return {CUDAQ_ERR_INVALID_ARG, text}; }

expected<> check(const gpu_roce_options &o) {
  in_addr address{};
  if (o.device.empty())
    return refuse("--device is empty: the name of an RDMA adapter is accepted, as ibv_devices lists it");
  if (o.peer_ip.empty() && !o.exchange_qp)
    return refuse("--peer-ip is missing: the IPv4 address of the sensor bridge, or --exchange-qp");
  if (!o.peer_ip.empty() && (inet_pton(AF_INET, o.peer_ip.c_str(), &address) != 1 || address.s_addr == 0))
    return make_reason(CUDAQ_ERR_INVALID_ARG, "--peer-ip '%s': an IPv4 address such as 192.168.0.2 is accepted",
                       o.peer_ip.c_str());
  if (o.page_size % kPageUnit != 0)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "--page-size %u: a multiple of %u is accepted", o.page_size, kPageUnit);
  if (o.frame_size() > o.page_size)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "--payload-size %u: with the header of %u bytes it must fit in "
                       "--page-size %u",
                       o.payload_size, CUDAQ_RPC_HEADER_SIZE, o.page_size);
  if (o.forward && (o.unified || o.cpu))
    return refuse("--forward: not with --unified or --cpu; a kernel of the sensor bridge returns each frame itself");
  if (o.unified && o.cpu)
    return refuse("--unified: not with --cpu; the unified kernel runs on the GPU, and there is no CPU dataplane");
  if (o.unified && o.num_pages > kMaxPages / 2)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "--num-pages %u: with --unified at most %u are accepted", o.num_pages,
                       kMaxPages / 2);
  // Each thread of the sensor bridge's send kernel looks at the flags of one residue class of the slots. With fewer
  // slots than threads, two threads would send the same answer.
  const bool power_of_two = (o.num_pages & (o.num_pages - 1)) == 0;
  if (!o.unified && !o.forward && (!power_of_two || o.num_pages < kQueueEntries))
    return make_reason(CUDAQ_ERR_INVALID_ARG, "--num-pages %u: a power of two from %u to %u is accepted", o.num_pages,
                       kQueueEntries, kMaxPages);
  return {};
}

} // namespace

expected<> parse_gpu_roce_options(int argc, char *const *argv, gpu_roce_options &out) {
  option_parser parser("gpu-roce", true);
  parser.add_choice("--device", {}, out.device);
  parser.add_choice("--peer-ip", {}, out.peer_ip);
  parser.add_number("--remote-qp", 1, 0xFFFFFF, out.remote_qp);
  parser.add_number("--gpu", 0, 1023, out.gpu);
  parser.add_number("--timeout", 1, 86400, out.timeout_s);
  parser.add_number("--page-size", kPageUnit, 1u << 20, out.page_size);
  parser.add_number("--num-pages", 1, kMaxPages, out.num_pages);
  parser.add_number("--payload-size", 0, 1u << 20, out.payload_size);
  parser.add_number("--exchange-port", 0, 65535, out.exchange_port);
  parser.add_flag("--forward", out.forward);
  parser.add_flag("--unified", out.unified);
  parser.add_flag("--cpu", out.cpu);
  parser.add_flag("--exchange-qp", out.exchange_qp);
  if (expected<> result = parser.parse(argc, argv); result.failed())
    return result;
  out.ignored_words = parser.ignored_words();
  return check(out);
}

} // namespace cudaq::realtime::detail
