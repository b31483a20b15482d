// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ucx/ucx_options.h"

#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"
#include "lib/transport/route/route_wire.h"

#include <charconv>
#include <string_view>

namespace cudaq::realtime::detail {
namespace {

struct number_option {
  std::string_view name;
  std::uint32_t least, most;
  std::uint32_t ucx_options::*value;
};
constexpr number_option kNumbers[] = {
    {"--port", 0, 65535, &ucx_options::port},
    {"--num-slots", 1, 65536, &ucx_options::num_slots},
    {"--slot-size", CUDAQ_RPC_HEADER_SIZE + 8, kMostNodeSlotBytes, &ucx_options::slot_size},
    {"--max-routers", 1, 64, &ucx_options::most_routers},
    {"--silence-ms", 10, 3600000, &ucx_options::silence_ms},
};
struct text_option {
  std::string_view name;
  std::string ucx_options::*value;
};
constexpr text_option kTexts[] = {{"--bind", &ucx_options::bind_address}, {"--tls", &ucx_options::tls}};

std::string text(std::string_view view) { return std::string(view); }

/// True: `name` is an option, and `refused` says whether its value was refused.
bool set(std::string_view name, std::string_view value, ucx_options &out, status_or_reason &refused) {
  for (const text_option &option : kTexts)
    if (option.name == name) {
      out.*option.value = text(value);
      return true;
    }
  for (const number_option &option : kNumbers) {
    if (option.name != name)
      continue;
    std::uint32_t number = 0;
    const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (code != std::errc{} || end != value.data() + value.size() || number < option.least || number > option.most)
      refused = make_reason(CUDAQ_ERR_INVALID_ARG, "%s '%s': a number from %u to %u is accepted", text(name).c_str(),
                            text(value).c_str(), option.least, option.most);
    out.*option.value = number;
    return true;
  }
  return false;
}

bool known(std::string_view name) {
  ucx_options ignored;
  status_or_reason refused;
  return set(name, "", ignored, refused);
}

} // namespace

status_or_reason read_ucx_options(int argc, char *const *argv, ucx_options &out) {
  if (argc > 0 && argv == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "argc %d: argv is NULL", argc);
  for (int i = 0; i < argc; ++i) {
    if (argv[i] == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "argv[%d]: is NULL", i);
    const std::string_view word = argv[i];
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    if (!known(name))
      return make_reason(CUDAQ_ERR_INVALID_ARG,
                         "'%s': the ucx provider has no such option; docs/transport/route.md has "
                         "them",
                         text(word).c_str());
    std::string_view value;
    if (equals != std::string_view::npos)
      value = word.substr(equals + 1);
    else if (i + 1 < argc && argv[i + 1] != nullptr)
      value = argv[++i];
    else
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s: the value is missing", text(name).c_str());
    status_or_reason refused;
    (void)set(name, value, out, refused);
    if (refused)
      return refused;
  }
  if (out.num_slots < out.most_routers)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "--num-slots %u: each of --max-routers %u needs one slot or more",
                       out.num_slots, out.most_routers);
  return {};
}

} // namespace cudaq::realtime::detail
