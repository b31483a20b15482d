// SPDX-License-Identifier: Apache-2.0
// How a program gets a link over UCX, and what UCX says of the machine, from libcudaq-realtime-bridge-ucx.so: it loads
// the library, and finds the functions by dlsym. Program and library are of the same build.
#pragma once

#include "lib/transport/route/node_link.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cudaq::realtime::detail {

inline constexpr std::uint32_t kUcxLinkVersion = 3; ///< changes with everything that this header names

struct ucx_link_options {
  struct node_address {
    std::string address; ///< IPv4
    std::uint32_t port = 0;
  };
  std::vector<node_address> nodes;
  std::string tls;                 ///< UCX_TLS; "": as the environment says, else UCX's choice
  std::uint32_t max_bytes = 65536; ///< of a message
};

inline constexpr const char *kUcxMakeLink = "cudaq_ucx_make_link";
/// The caller deletes the link. NULL: `reason` has the text, cut to reason_bytes (at least 1).
using ucx_make_link_fn = node_link *(*)(std::uint32_t version, const ucx_link_options *options, char *reason,
                                        std::size_t reason_bytes);

struct ucx_description {
  std::string version;                ///< of the library that runs
  std::vector<std::string> resources; ///< what UCX may use here, each as TRANSPORT/DEVICE: "tcp/lo"
};

inline constexpr const char *kUcxDescribe = "cudaq_ucx_describe";
/// False: `reason` has the text, as above.
using ucx_describe_fn = bool (*)(std::uint32_t version, ucx_description *out, char *reason, std::size_t reason_bytes);

} // namespace cudaq::realtime::detail
