// SPDX-License-Identifier: Apache-2.0
// A UDP socket, and the batches in which it receives and sends. Nothing blocks except wait.
#pragma once

#include "lib/base/error_text.h"
#include "lib/transport/udp/udp_address.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cudaq::realtime::detail {

inline constexpr std::uint32_t kUdpBatch = 32; ///< most datagrams of one system call

/// Makes an address from a numeric IPv4 or IPv6 address. The reason names `field`.
status_or_reason udp_address_of(const char *field, const std::string &text, std::uint32_t port, udp_address &out);

class udp_socket {
public:
  udp_socket() = default;
  ~udp_socket();
  udp_socket(const udp_socket &) = delete;
  udp_socket &operator=(const udp_socket &) = delete;

  /// Opens the socket and binds it. `receive_buffer` in bytes; 0: the system's default.
  status_or_reason open(const udp_address &local, std::uint32_t receive_buffer);
  /// The only peer from now on: datagrams of others are not received.
  status_or_reason connect(const udp_address &peer);
  /// The port that the socket is bound to.
  std::uint32_t port() const;
  int fd() const { return fd_; }
  /// Waits until a datagram has arrived (only if `receive` is set), or until the time is over.
  void wait(bool receive, std::chrono::nanoseconds time) const;

private:
  int fd_ = -1;
};

class receive_batch {
public:
  receive_batch();
  receive_batch(const receive_batch &) = delete;
  receive_batch &operator=(const receive_batch &) = delete;

  /// Where datagram i goes. It stays set.
  void set_target(std::uint32_t i, std::uint8_t *target, std::size_t size) { parts_[i] = {target, size}; }
  /// Receives what has arrived, at most `most` datagrams. -1: the system reported an error.
  int receive(const udp_socket &socket, std::uint32_t most);

  std::size_t size(std::uint32_t i) const { return messages_[i].msg_len; }
  /// The datagram was longer than its target.
  bool cut(std::uint32_t i) const { return (messages_[i].msg_hdr.msg_flags & MSG_TRUNC) != 0; }
  const udp_address &from(std::uint32_t i) const { return from_[i]; }
  /// Datagrams that the system has dropped since the last call, because the socket's buffer was full.
  std::uint32_t dropped_by_system();

private:
  void read_drops(const msghdr &header);

  std::array<mmsghdr, kUdpBatch> messages_{};
  std::array<iovec, kUdpBatch> parts_{};
  std::array<udp_address, kUdpBatch> from_{};
  struct alignas(cmsghdr) control_space {
    unsigned char bytes[CMSG_SPACE(sizeof(std::uint32_t))];
  };
  std::array<control_space, kUdpBatch> control_{};
  std::uint32_t drops_ = 0, drops_read_ = 0;
};

/// Datagrams of one size: a frame, then zeros.
class send_batch {
public:
  explicit send_batch(std::uint32_t datagram_size);
  send_batch(const send_batch &) = delete;
  send_batch &operator=(const send_batch &) = delete;

  bool full() const { return count_ == kUdpBatch; }
  std::uint32_t count() const { return count_; }
  /// The frame must stay as it is until flush. At most datagram_size bytes.
  void add(const udp_address &to, std::span<std::uint8_t> frame);
  struct result {
    std::uint32_t done = 0;   ///< the first so many are sent, or refused; the system has no room for the others now
    std::uint32_t failed = 0; ///< of them, refused
  };
  /// Sends, and empties the batch.
  result flush(const udp_socket &socket);

private:
  std::array<mmsghdr, kUdpBatch> messages_{};
  std::array<std::array<iovec, 2>, kUdpBatch> parts_{};
  std::array<udp_address, kUdpBatch> to_{};
  std::uint32_t count_ = 0;
  std::vector<std::uint8_t> zeros_;
};

} // namespace cudaq::realtime::detail
