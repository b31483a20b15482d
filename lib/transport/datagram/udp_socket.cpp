// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/udp_socket.h"

#include "lib/base/descriptor.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <unistd.h>

namespace cudaq::realtime::detail {

expected<> udp_address_of(const char *field, const std::string &text, std::uint32_t port, udp_address &out) {
  out = {};
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    std::memcpy(&out.bytes, &v4, sizeof(v4));
    out.length = sizeof(v4);
    return {};
  }
  out.bytes.sin6_family = AF_INET6;
  out.bytes.sin6_port = htons(static_cast<std::uint16_t>(port));
  out.length = sizeof(out.bytes);
  if (inet_pton(AF_INET6, text.c_str(), &out.bytes.sin6_addr) == 1)
    return {};
  return make_reason(CUDAQ_ERR_INVALID_ARG, "%s '%s': a numeric IPv4 or IPv6 address is accepted, such as 127.0.0.1",
                     field, text.c_str());
}

expected<> own_address_towards(const udp_address &peer, udp_address &out) {
  udp_address any;
  any.length = peer.length;
  any.get()->sa_family = peer.get()->sa_family;
  udp_socket probe;
  if (expected<> result = probe.open(any, 0); result.failed())
    return result;
  if (expected<> result = probe.connect(peer); result.failed()) // sends nothing
    return result;
  out = probe.local();
  out.set_port(0);
  return {};
}

udp_socket::~udp_socket() {
  if (fd_ >= 0)
    close(fd_);
}

expected<> udp_socket::open(const udp_address &local, std::uint32_t receive_buffer) {
  fd_ = above_standard_streams(::socket(local.get()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd_ < 0)
    return make_reason(CUDAQ_ERR_INTERNAL, "the system made no UDP socket: %s", std::strerror(errno));
  const int on = 1;
  setsockopt(fd_, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof(on)); // without it, drops of the system are not counted
  if (receive_buffer != 0) {
    const int bytes = static_cast<int>(receive_buffer);
    if (setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)) != 0)
      return make_reason(CUDAQ_ERR_INTERNAL, "--receive-buffer %u: the system refused it: %s", receive_buffer,
                         std::strerror(errno));
  }
  if (bind(fd_, local.get(), local.length) != 0) {
    char text[INET6_ADDRSTRLEN] = "";
    const bool is_v4 = local.is_v4();
    inet_ntop(local.get()->sa_family,
              is_v4 ? static_cast<const void *>(&reinterpret_cast<const sockaddr_in *>(local.get())->sin_addr)
                    : static_cast<const void *>(&local.bytes.sin6_addr),
              text, sizeof(text));
    return make_reason(CUDAQ_ERR_INTERNAL, "--bind %s, --port %u: the system refused the address: %s", text,
                       static_cast<unsigned>(local.port()), std::strerror(errno));
  }
  return {};
}

expected<> udp_socket::connect(const udp_address &peer) {
  if (::connect(fd_, peer.get(), peer.length) != 0)
    return make_reason(CUDAQ_ERR_INTERNAL, "the system refused the peer's address: %s", std::strerror(errno));
  return {};
}

expected<> udp_socket::do_not_fragment() {
  const int always = IP_PMTUDISC_DO;
  if (setsockopt(fd_, IPPROTO_IP, IP_MTU_DISCOVER, &always, sizeof(always)) != 0)
    return make_reason(CUDAQ_ERR_INTERNAL, "the system refused to send without fragments: %s", std::strerror(errno));
  return {};
}

udp_address udp_socket::local() const {
  udp_address bound;
  bound.length = sizeof(bound.bytes);
  if (getsockname(fd_, bound.get(), &bound.length) != 0)
    return {};
  return bound;
}

std::size_t udp_socket::receive_buffer() const {
  int bytes = 0;
  socklen_t size = sizeof(bytes);
  return getsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, &size) == 0 ? static_cast<std::size_t>(bytes) : 0;
}

void udp_socket::wait(bool receive, std::chrono::nanoseconds time) const {
  pollfd entry{fd_, POLLIN, 0};
  timespec limit{};
  limit.tv_sec = static_cast<time_t>(time.count() / 1000000000);
  limit.tv_nsec = static_cast<long>(time.count() % 1000000000);
  ppoll(&entry, receive ? 1 : 0, &limit, nullptr);
}

receive_batch::receive_batch(std::span<iovec, kUdpBatch> parts) : parts_(parts) {
  for (std::uint32_t i = 0; i < kUdpBatch; ++i) {
    msghdr &header = messages_[i].msg_hdr;
    header.msg_name = &from_[i].bytes;
    header.msg_iov = &parts_[i];
    header.msg_iovlen = 1;
    header.msg_control = control_[i].bytes;
    header.msg_controllen = sizeof(control_[i].bytes);
    header.msg_namelen = sizeof(from_[i].bytes);
  }
}

int receive_batch::receive(const udp_socket &socket, std::uint32_t max_count) {
  const int n = recvmmsg(socket.fd(), messages_.data(), max_count, MSG_DONTWAIT, nullptr);
  if (n < 0)
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
  for (int i = 0; i < n; ++i) {
    msghdr &header = messages_[static_cast<std::size_t>(i)].msg_hdr;
    from_[static_cast<std::size_t>(i)].length = header.msg_namelen;
    if (header.msg_controllen != 0)
      read_drops(header);
    header.msg_namelen = sizeof(sockaddr_in6); // the call has stored the lengths that it wrote
    header.msg_controllen = sizeof(control_space::bytes);
  }
  return n;
}

void receive_batch::read_drops(const msghdr &header) {
  const cmsghdr *const item = CMSG_FIRSTHDR(&header);
  if (item != nullptr && item->cmsg_level == SOL_SOCKET && item->cmsg_type == SO_RXQ_OVFL)
    std::memcpy(&drops_, CMSG_DATA(item), sizeof(drops_)); // a count since the socket was opened
}

std::uint32_t receive_batch::dropped_by_system() {
  const std::uint32_t n = drops_ - drops_read_;
  drops_read_ = drops_;
  return n;
}

frame_sender::result send_messages(const udp_socket &socket, std::span<mmsghdr> messages) {
  frame_sender::result r;
  while (r.done < messages.size()) {
    const int n = sendmmsg(socket.fd(), messages.data() + r.done, static_cast<unsigned>(messages.size()) - r.done,
                           MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) {
      r.done += static_cast<std::uint32_t>(n);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) {
      break;
    } else if (errno != EINTR) { // it is the first message that was refused
      ++r.done;
      ++r.failed;
      r.port_unreachable = r.port_unreachable || errno == ECONNREFUSED;
    }
  }
  return r;
}

} // namespace cudaq::realtime::detail
