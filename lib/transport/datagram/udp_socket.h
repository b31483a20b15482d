// SPDX-License-Identifier: Apache-2.0
// A UDP socket, and the batch in which it receives. Nothing blocks except wait.
#pragma once

#include "lib/transport/datagram/datagram_wire.h"

#include <array>
#include <chrono>
#include <string>

namespace cudaq::realtime::detail {

/// Makes an address from a numeric IPv4 or IPv6 address. The reason names `field`.
expected<> udp_address_of(const char *field, const std::string &text, std::uint32_t port, udp_address &out);

/// The address of this machine, port 0, from which the system sends to a peer.
expected<> own_address_towards(const udp_address &peer, udp_address &out);

class udp_socket {
public:
  udp_socket() = default;
  ~udp_socket();
  udp_socket(const udp_socket &) = delete;
  udp_socket &operator=(const udp_socket &) = delete;

  /// Opens the socket and binds it. `receive_buffer` in bytes; 0: the system's default.
  expected<> open(const udp_address &local, std::uint32_t receive_buffer);
  /// The only peer from now on: datagrams of others are not received.
  expected<> connect(const udp_address &peer);
  /// Sends with the bit "do not fragment": the identification of IPv4 is then 0, if the socket is not connected.
  expected<> do_not_fragment();
  /// The address that the socket is bound to.
  udp_address local() const;
  std::uint32_t port() const { return local().port(); }
  int fd() const { return fd_; }
  /// Bytes that the system keeps for datagrams that wait.
  std::size_t receive_buffer() const;
  /// Waits until a datagram has arrived (only if `receive` is set), or until the time is over.
  void wait(bool receive, std::chrono::nanoseconds time) const;

private:
  int fd_ = -1;
};

/// Datagrams as they arrive.
class receive_batch {
public:
  /// Datagram i goes to parts[i], which must live as long as the batch.
  explicit receive_batch(std::span<iovec, kUdpBatch> parts);
  receive_batch(const receive_batch &) = delete;
  receive_batch &operator=(const receive_batch &) = delete;

  /// Receives the datagrams that have arrived, at most `max_count`. -1: the system reported an error.
  int receive(const udp_socket &socket, std::uint32_t max_count);

  std::span<const std::uint8_t> bytes(std::uint32_t i) const {
    return {static_cast<const std::uint8_t *>(parts_[i].iov_base), messages_[i].msg_len};
  }
  /// The datagram was longer than its target.
  bool cut(std::uint32_t i) const { return (messages_[i].msg_hdr.msg_flags & MSG_TRUNC) != 0; }
  const udp_address &from(std::uint32_t i) const { return from_[i]; }
  /// Datagrams that the system has dropped since the last call, because the socket's buffer was full.
  std::uint32_t dropped_by_system();

private:
  void read_drops(const msghdr &header);

  std::array<mmsghdr, kUdpBatch> messages_{};
  const std::span<iovec, kUdpBatch> parts_;
  std::array<udp_address, kUdpBatch> from_{};
  struct alignas(cmsghdr) control_space {
    unsigned char bytes[CMSG_SPACE(sizeof(std::uint32_t))];
  };
  std::array<control_space, kUdpBatch> control_{};
  std::uint32_t drops_ = 0, drops_read_ = 0;
};

/// Sends datagrams that are ready; see frame_sender::flush. `messages` has all that are sent.
frame_sender::result send_messages(const udp_socket &socket, std::span<mmsghdr> messages);

} // namespace cudaq::realtime::detail
