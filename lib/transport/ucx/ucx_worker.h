// SPDX-License-Identifier: Apache-2.0
// A worker of UCX: connections by socket address, and messages over them as active messages. Everything that calls UCX
// is in ucx_worker.cpp. One thread at a time uses an object.
#pragma once

#include "lib/base/error_text.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cudaq::realtime::detail {

struct ucx_settings {
  std::string tls;                 ///< UCX_TLS; "": as the environment says, else UCX's choice
  std::uint32_t max_bytes = 65536; ///< of a message; a longer one is dropped
  bool loopback = false;           ///< all addresses are of this machine: UCX uses no other network interface
};

class ucx_worker {
public:
  /// Called by progress only. `connection`: 0 if the message does not tell.
  struct events {
    std::function<void(std::uint64_t connection, std::span<const std::uint8_t> message)> message;
    std::function<void(std::uint64_t connection)> connected; ///< of a listener
    std::function<void(std::uint64_t connection)> failed;    ///< it is closed already
  };

  ucx_worker();
  ucx_worker(const ucx_worker &) = delete;
  ucx_worker &operator=(const ucx_worker &) = delete;
  /// Closes everything; waits at most 1 s for connections, and 10 s for UCX's thread to close what a listener has
  /// accepted. After that it leaves UCX's objects and thread as they are.
  ~ucx_worker();

  expected<> open(const ucx_settings &settings, events receiver);
  /// `address`: IPv4. Port 0: the system chooses one. After it: port().
  expected<> listen(const std::string &address, std::uint32_t port);
  [[nodiscard]] std::uint32_t port() const noexcept;

  /// 0: it cannot. A connection whose other side does not answer stays until it is closed.
  std::uint64_t connect(const std::string &address, std::uint32_t port);
  /// Sends header and payload as one message. Both are copied. `introduces`: the receiver learns which connection the
  /// message came over. Nothing happens if there is no such connection. Without memory for it the connection fails.
  void send(std::uint64_t connection, std::span<const std::uint8_t> header, std::span<const std::uint8_t> payload,
            bool introduces);
  /// At once: messages that were not sent yet may be lost.
  void close(std::uint64_t connection);
  /// Moves data and calls the events. Returns the work count. Does nothing if open has failed, and so flush.
  std::uint32_t progress();
  /// Progress until all that was sent has left this process. False: not before the limit.
  bool flush(std::uint64_t limit_ns);
  /// UCX's name of the transport that carries the connection's messages, such as posix or tcp; "" if it is not known.
  std::string carrier(std::uint64_t connection);
  /// What UCX may use, each as TRANSPORT/DEVICE: "tcp/lo". The version of UCX.
  std::vector<std::string> resources() const;
  static std::string version();

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace cudaq::realtime::detail
