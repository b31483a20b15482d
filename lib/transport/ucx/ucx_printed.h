// SPDX-License-Identifier: Apache-2.0
// Facts that UCX 1.13 has no function for: they are read from the text that it prints.
#pragma once

#include <string>
#include <ucp/api/ucp.h>
#include <vector>

namespace cudaq::realtime::detail {

/// The transport of the lane that carries active messages; "" if it is not known.
std::string message_transport(ucp_ep_h endpoint);

/// What the context may use, each as TRANSPORT/DEVICE: "tcp/lo".
std::vector<std::string> context_resources(ucp_context_h context);

} // namespace cudaq::realtime::detail
