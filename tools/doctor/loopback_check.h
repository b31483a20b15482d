// SPDX-License-Identifier: Apache-2.0
// One request from a client through a provider and a dispatcher of this process, and its answer back.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_types.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

inline constexpr std::uint32_t kLoopbackFunction = 0xD0C;
inline constexpr std::array<std::uint8_t, 2> kLoopbackPayload = {0x43, 0x51};

/// A client of one provider.
class one_request {
public:
  virtual ~one_request() = default;
  /// Whether it can send. Called until it can.
  virtual bool connect() { return true; }
  virtual bool send() = 0;
  /// The result that has come; false: none yet.
  virtual bool receive(std::vector<std::uint8_t> &result) = 0;
  /// The transport that carries the request, for people; "": not known.
  virtual std::string carrier() { return ""; }
};

/// Of a request that was answered right, in `what`: "one request ... and back". A warning if it took more than 1 ms,
/// which is some hundred times what it needs on an idle core.
finding judged_round_trip(const std::string &name, const std::string &what, double took_ns,
                          const std::string &after = "");

/// The counts of the parts on the way of a request.
struct hop_counts {
  bool connected = true;        ///< the provider has answered the client before it sends
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
