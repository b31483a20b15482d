// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ucx/ucx_printed.h"

#include <cstdio>
#include <cstdlib>

namespace cudaq::realtime::detail {
namespace {

template <class Print>
std::string printed(Print &&print) {
  char *text = nullptr;
  std::size_t size = 0;
  std::FILE *const stream = open_memstream(&text, &size);
  if (stream == nullptr)
    return "";
  print(stream);
  std::fclose(stream);
  std::string copy(text, size);
  std::free(text);
  return copy;
}

} // namespace

// From the text of ucp_ep_print_info: "#  lane[1]:  0:tcp/lo.0 md[0]  -> md[0]/tcp/sysdev[255] rma_bw#0 am am_bw#0
// wireup".
std::string message_transport(ucp_ep_h endpoint) {
  const std::string text = printed([&](std::FILE *to) { ucp_ep_print_info(endpoint, to); });
  for (std::size_t at = text.find("lane["); at != std::string::npos; at = text.find("lane[", at + 1)) {
    const std::string line = text.substr(at, text.find('\n', at) - at) + " ";
    const std::size_t slash = line.find('/');
    const std::size_t colon = line.rfind(':', slash);
    if (line.find(" am ") != std::string::npos && slash != std::string::npos && colon != std::string::npos)
      return line.substr(colon + 1, slash - colon - 1);
  }
  return "";
}

// Lines such as "#      resource 3  :  md 2  dev 1  flags -- tcp/lo".
std::vector<std::string> context_resources(ucp_context_h context) {
  const std::string text = printed([&](std::FILE *to) { ucp_context_print_info(context, to); });
  std::vector<std::string> found;
  for (std::size_t at = text.find(" resource "); at != std::string::npos; at = text.find(" resource ", at + 1)) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    const std::size_t last = line.find_last_not_of(' '), space = line.rfind(' ', last);
    found.push_back(line.substr(space + 1, last - space));
  }
  return found;
}

} // namespace cudaq::realtime::detail
