// SPDX-License-Identifier: Apache-2.0
// The address and port of a peer, as the socket calls take it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <netinet/in.h>
#include <string_view>
#include <sys/socket.h>

namespace cudaq::realtime::detail {

/// IPv4 or IPv6. The bytes after those of the family are 0.
struct udp_address {
  sockaddr_in6 bytes{}; ///< large enough for both families
  socklen_t length = 0;

  sockaddr *get() { return reinterpret_cast<sockaddr *>(&bytes); }
  const sockaddr *get() const { return reinterpret_cast<const sockaddr *>(&bytes); }
  bool is_v4() const { return get()->sa_family == AF_INET; }
  std::uint16_t port() const { return ntohs(bytes.sin6_port); } ///< both families have it at the same place
  void set_port(std::uint16_t port) { bytes.sin6_port = htons(port); }
  /// Of IPv4; in network order.
  in_addr_t v4() const { return reinterpret_cast<const sockaddr_in *>(&bytes)->sin_addr.s_addr; }
  std::string_view view() const { return {reinterpret_cast<const char *>(&bytes), length}; }
  bool operator==(const udp_address &other) const { return view() == other.view(); }
};
static_assert(sizeof(sockaddr_in) <= sizeof(sockaddr_in6));

struct udp_address_hash {
  std::size_t operator()(const udp_address &address) const { return std::hash<std::string_view>()(address.view()); }
};

} // namespace cudaq::realtime::detail
