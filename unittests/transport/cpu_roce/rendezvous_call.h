// SPDX-License-Identifier: Apache-2.0
// The caller's side of the rendezvous: three words each, the caller first.
#pragma once

#include <arpa/inet.h>
#include <cstdint>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace cudaq::realtime::test {

struct call_numbers {
  std::uint32_t qp, rkey, address;
};

/// A connection, or -1. What is read from it waits 20 s at most.
inline int rendezvous_connect(const std::string &ip, std::uint32_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  inet_pton(AF_INET, ip.c_str(), &to.sin_addr);
  const timeval limit = {20, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  if (::connect(fd, reinterpret_cast<const sockaddr *>(&to), sizeof(to)) == 0)
    return fd;
  ::close(fd);
  return -1;
}

inline bool rendezvous_send(int fd, const call_numbers &own) {
  const std::uint32_t bytes[3] = {htonl(own.qp), htonl(own.rkey), htonl(own.address)};
  return ::send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) == sizeof(bytes);
}

/// Nothing: the other side has closed the connection.
inline std::optional<call_numbers> rendezvous_receive(int fd) {
  std::uint32_t bytes[3];
  if (::recv(fd, bytes, sizeof(bytes), MSG_WAITALL) != sizeof(bytes))
    return {};
  return call_numbers{ntohl(bytes[0]), ntohl(bytes[1]), ntohl(bytes[2])};
}

} // namespace cudaq::realtime::test
