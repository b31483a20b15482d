// SPDX-License-Identifier: Apache-2.0
// A router's connections to its nodes: the interface of an engine to a network. One thread uses an object at a time.
#pragma once

#include "lib/transport/route/route_wire.h"

#include <functional>
#include <optional>
#include <string>

namespace cudaq::realtime::detail {

class node_link {
public:
  /// `from`: the node whose connection the message came over, if the message names it.
  using message_receiver =
      std::function<void(std::optional<std::uint32_t> from, std::span<const std::uint8_t> message)>;
  using failure_receiver = std::function<void(std::uint32_t node)>;

  virtual ~node_link() = default;
  /// Begins a connection to a node. Messages to the node wait until it exists. False: no connection can be made.
  virtual bool connect(std::uint32_t node) = 0;
  /// Ends the connection at once, without waiting for the other side. A later connect makes a new one.
  virtual void disconnect(std::uint32_t node) = 0;
  /// Header and payload are copied. Without a connection, nothing happens.
  virtual void send(std::uint32_t node, const route_header &header, std::span<const std::uint8_t> payload) = 0;
  /// Moves data. Calls `message` for each message that has come, from any node, and `failed` for each node whose
  /// connection has broken. Returns the work count. flush calls the two of the last progress: they live until then.
  virtual std::uint32_t progress(const message_receiver &message, const failure_receiver &failed) = 0;
  /// Waits until the network has all sent messages. False: it has not got them within the limit.
  virtual bool flush(std::uint64_t limit_ns) = 0;
  /// The name of the transport that carries the messages of a node, for people: "posix", "tcp".
  virtual std::string carrier(std::uint32_t node) = 0;
};

} // namespace cudaq::realtime::detail
