// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/gpu_roce/gpu_roce_options.h"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

namespace cudaq::realtime::detail {
namespace {

/// The sensor bridge addresses pages in units of this.
constexpr std::uint32_t kPageUnit = 128;

struct number {
  std::uint32_t *value;
  std::uint32_t least, most;
};
struct option {
  std::string_view name;
  std::variant<bool *, std::string *, number> to;
};

std::string text(std::string_view view) { return std::string(view); }

status_or_reason set_value(const option &o, std::string_view value) {
  if (std::string *const *const word = std::get_if<std::string *>(&o.to)) {
    **word = text(value);
    return {};
  }
  const number &n = std::get<number>(o.to);
  const bool hex = value.substr(0, 2) == "0x";
  const std::string_view digits = value.substr(hex ? 2 : 0);
  std::uint32_t parsed = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), parsed, hex ? 16 : 10);
  if (code != std::errc{} || end != digits.data() + digits.size() || parsed < n.least || parsed > n.most)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "%s '%s': a number from %u to %u is accepted", text(o.name).c_str(),
                       text(value).c_str(), n.least, n.most);
  *n.value = parsed;
  return {};
}

status_or_reason read_words(const std::vector<std::string_view> &words, const std::vector<option> &options) {
  const bool lenient = std::find(words.begin(), words.end(), "--lenient") != words.end();
  for (std::size_t at = !words.empty() && words[0].substr(0, 2) != "--" ? 1 : 0; at < words.size(); ++at) {
    const std::size_t equals = words[at].find('=');
    const std::string_view name = words[at].substr(0, equals);
    const auto o = std::find_if(options.begin(), options.end(), [&](const option &each) { return each.name == name; });
    if (o == options.end()) {
      if (lenient)
        continue;
      return make_reason(CUDAQ_ERR_INVALID_ARG, "'%s': the gpu-roce provider has no such option%s",
                         text(words[at]).c_str(),
                         name.substr(0, 2) == "--" ? "; --lenient ignores unknown options" : "");
    }
    if (bool *const *const flag = std::get_if<bool *>(&o->to)) {
      if (equals != std::string_view::npos)
        return make_reason(CUDAQ_ERR_INVALID_ARG, "%s: this option has no value", text(words[at]).c_str());
      **flag = true;
      continue;
    }
    std::optional<std::string_view> value;
    if (equals != std::string_view::npos)
      value = words[at].substr(equals + 1);
    else if (at + 1 < words.size())
      value = words[++at];
    if (!value)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s: the value is missing", text(name).c_str());
    if (status_or_reason refused = set_value(*o, *value))
      return refused;
  }
  return {};
}

status_or_reason refuse(const char *text) { return {CUDAQ_ERR_INVALID_ARG, text}; }

status_or_reason check(const gpu_roce_options &o) {
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
  if (o.unified && o.num_pages > kMostPages / 2)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "--num-pages %u: with --unified at most %u are accepted", o.num_pages,
                       kMostPages / 2);
  // Each thread of the sensor bridge's send kernel looks at the flags of one residue class of the slots. With fewer
  // slots than threads, two threads would send the same answer.
  const bool power_of_two = (o.num_pages & (o.num_pages - 1)) == 0;
  if (!o.unified && !o.forward && (!power_of_two || o.num_pages < kQueueEntries))
    return make_reason(CUDAQ_ERR_INVALID_ARG, "--num-pages %u: a power of two from %u to %u is accepted", o.num_pages,
                       kQueueEntries, kMostPages);
  return {};
}

} // namespace

status_or_reason parse_gpu_roce_options(int argc, char *const *argv, gpu_roce_options &out) {
  if (argc > 0 && argv == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "argc %d: argv is NULL", argc);
  for (int i = 0; i < argc; ++i)
    if (argv[i] == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "argv[%d]: is NULL", i);
  bool lenient = false;
  const std::vector<option> options = {
      {"--device", &out.device},
      {"--peer-ip", &out.peer_ip},
      {"--remote-qp", number{&out.remote_qp, 1, 0xFFFFFF}},
      {"--gpu", number{&out.gpu, 0, 1023}},
      {"--timeout", number{&out.timeout_s, 1, 86400}},
      {"--page-size", number{&out.page_size, kPageUnit, 1u << 20}},
      {"--num-pages", number{&out.num_pages, 1, kMostPages}},
      {"--payload-size", number{&out.payload_size, 0, 1u << 20}},
      {"--exchange-port", number{&out.exchange_port, 0, 65535}},
      {"--forward", &out.forward},
      {"--unified", &out.unified},
      {"--cpu", &out.cpu},
      {"--exchange-qp", &out.exchange_qp},
      {"--lenient", &lenient},
  };
  if (status_or_reason refused = read_words(std::vector<std::string_view>(argv, argv + std::max(argc, 0)), options))
    return refused;
  return check(out);
}

} // namespace cudaq::realtime::detail
