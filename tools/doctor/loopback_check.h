// SPDX-License-Identifier: Apache-2.0
// One request from a client through a provider and a dispatcher of this process, and its answer back.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"

#include <cstdint>
#include <string>

namespace cudaq::realtime::tools {

/// What the parts on the way of a request have counted.
struct hop_counts {
  bool sent = false;            ///< the client has given the request to the system
  bool provider_counts = false; ///< the next two are known
  std::uint64_t arrived = 0;    ///< at the provider
  std::uint64_t accepted = 0;   ///< by the provider
  std::uint64_t heartbeat = 0;  ///< turns of the dispatcher
  std::uint64_t received = 0;   ///< by the dispatcher
  int handled = 0;              ///< calls of the handler
};

/// The first part that did not do its work, in the order of the request's way. For a request without an answer.
std::string silent_hop(const hop_counts &counts);

/// The handler of the self-tests: answers with the payload, and counts its calls in `user`, a std::atomic<int>.
std::int32_t echo_and_count(cudaq_host_call_t *call, void *user);

} // namespace cudaq::realtime::tools
