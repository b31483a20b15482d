// SPDX-License-Identifier: Apache-2.0
// A peer that sends any bytes and reads what comes back. Every wait has a deadline.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#include "lib/transport/datagram/udp_socket.h"
#include "unittests/support/host_fixture.h"

#include <cstring>
#include <optional>
#include <vector>

namespace cudaq::realtime::test {

using bytes = std::vector<std::uint8_t>;

/// A request frame, filled with zeros up to `size`; size 0: only the frame.
inline bytes request_bytes(std::uint32_t function_id, std::uint32_t request_id, const bytes &payload,
                           std::size_t size = 0, std::uint64_t timestamp = 0) {
  const cudaq_rpc_header_t header = {CUDAQ_RPC_MAGIC_REQUEST, function_id, static_cast<std::uint32_t>(payload.size()),
                                     request_id, timestamp};
  const auto *const first = reinterpret_cast<const std::uint8_t *>(&header);
  bytes frame(first, first + sizeof(header));
  frame.insert(frame.end(), payload.begin(), payload.end());
  frame.resize(std::max(size, frame.size()));
  return frame;
}

inline cudaq_rpc_response_t response_header(const bytes &datagram) {
  cudaq_rpc_response_t header{};
  if (datagram.size() >= sizeof(header))
    std::memcpy(&header, datagram.data(), sizeof(header));
  return header;
}

inline bytes result_of(const bytes &datagram) {
  const std::size_t length = std::min<std::size_t>(response_header(datagram).result_len, datagram.size() - 24);
  return {datagram.begin() + 24, datagram.begin() + 24 + static_cast<std::ptrdiff_t>(length)};
}

class udp_peer {
public:
  explicit udp_peer(std::uint32_t server_port, std::uint32_t own_port = 0, const char *address = "127.0.0.1") {
    detail::udp_address local, server;
    EXPECT_EQ(detail::udp_address_of("own", address, own_port, local).text(), "");
    EXPECT_EQ(detail::udp_address_of("server", address, server_port, server).text(), "");
    EXPECT_EQ(socket_.open(local, 0).text(), "");
    EXPECT_EQ(socket_.connect(server).text(), "");
  }

  void send(const bytes &datagram) { ::send(socket_.fd(), datagram.data(), datagram.size(), MSG_NOSIGNAL); }
  /// Waits at most `limit`.
  std::optional<bytes> receive(std::chrono::nanoseconds limit = kDeadline) {
    bytes datagram(70000);
    ssize_t n = -1;
    const auto arrived = [&] {
      n = ::recv(socket_.fd(), datagram.data(), datagram.size(), MSG_DONTWAIT);
      return n >= 0;
    };
    if (!eventually(arrived, limit))
      return {};
    datagram.resize(static_cast<std::size_t>(n));
    return datagram;
  }
  /// The next datagram, if one has arrived.
  std::optional<bytes> arrived() { return receive(std::chrono::nanoseconds(0)); }
  std::uint32_t port() const { return socket_.port(); }

private:
  detail::udp_socket socket_;
};

} // namespace cudaq::realtime::test
