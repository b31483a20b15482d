// SPDX-License-Identifier: Apache-2.0
// Plain TCP sockets of this machine.
#pragma once

#include <arpa/inet.h>
#include <cstdint>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace cudaq::realtime::test {

inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// A socket that is closed with the object.
class loopback_socket {
public:
  explicit loopback_socket(int fd) : fd_(fd) { EXPECT_GE(fd, 0); }
  ~loopback_socket() { close(fd_); }
  loopback_socket(const loopback_socket &) = delete;
  loopback_socket &operator=(const loopback_socket &) = delete;
  int fd() const { return fd_; }

  /// -1: refused.
  static int connected_to(std::uint16_t port) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(port);
    if (connect(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0)
      return fd;
    close(fd);
    return -1;
  }

private:
  const int fd_;
};

} // namespace cudaq::realtime::test
