// SPDX-License-Identifier: Apache-2.0
// The emulated control system's connection to a server: requests out, answers in, by request id. One thread uses it.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace cudaq::realtime::tools {

struct link_answer {
  cudaq_rpc_response_t header{};
  std::span<const std::uint8_t> result; ///< valid until the next call of receive
};

/// The events on the way, as far as the client sees them.
struct link_counters {
  std::uint64_t repeated = 0;   ///< requests that were sent again because no answer came
  std::uint64_t unexpected = 0; ///< answers to no open request
  std::size_t other_size = 0;   ///< bytes of answers that are not as long as a slot; 0: there were none
};

class link {
public:
  virtual ~link() = default;
  /// Sends a request. False: no room at this moment. Ids are consecutive, from 0 on.
  virtual bool send(std::uint32_t id, std::uint32_t function_id, std::span<const std::uint8_t> payload,
                    std::uint64_t timestamp) = 0;
  /// An answer that has arrived; does not wait.
  virtual std::optional<link_answer> receive() = 0;
  /// No answer to this request is expected any more.
  virtual void give_up(std::uint32_t id) = 0;
  /// False: the other side has ended, as far as this side can know it.
  virtual bool alive() = 0;
  /// Why it is not alive.
  virtual std::string end_text() const { return "the server has ended"; }
  /// From now on, or not any more: a query to a server whose slots may have another size reaches it, and so does its
  /// answer.
  virtual void accept_any_size(bool) {}
  /// Throws usage_error if a slot of the server is too small for a payload.
  virtual void require_room(std::size_t) const {}
  virtual link_counters counters() const = 0;
  virtual std::string describe() const = 0;
};

} // namespace cudaq::realtime::tools
