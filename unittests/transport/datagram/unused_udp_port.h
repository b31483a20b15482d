// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/transport/datagram/udp_socket.h"

#include <random>
#include <stdexcept>

namespace cudaq::realtime::test {

/// A UDP port of the loopback address at which nothing listens. The system gives it to no socket by itself: those ports
/// begin at 32768. So a server that was killed finds its port free when it starts again.
inline std::uint32_t unused_udp_port() {
  std::random_device random;
  for (int attempt = 0; attempt < 1000; ++attempt) {
    detail::udp_address address;
    detail::udp_socket socket;
    if (detail::udp_address_of("address", "127.0.0.1", 10000 + random() % 20000, address).ok() &&
        socket.open(address, 0).ok())
      return socket.port();
  }
  throw std::runtime_error("no free port");
}

} // namespace cudaq::realtime::test
