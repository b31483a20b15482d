// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/cpu_roce/rendezvous.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <netinet/tcp.h>
#include <new>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace cudaq::realtime::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto kPeriod = 100ms; // of looks at deadlines and at the state of the connection
constexpr std::size_t kBytes = 12;

void set(int fd, int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof(value)); }

rendezvous_numbers numbers_of(const std::uint8_t *bytes) {
  std::uint32_t words[3];
  std::memcpy(words, bytes, sizeof(words));
  return {ntohl(words[0]), ntohl(words[1]), ntohl(words[2])};
}

/// Queue pairs 0 and 1 are of the network's management.
bool possible(const rendezvous_numbers &n) {
  return n.qp > 1 && n.qp < 1u << 24 && n.address != 0 && !IN_MULTICAST(n.address) && n.address != INADDR_BROADCAST;
}

} // namespace

void owned_fd::reset() {
  if (fd_ >= 0)
    ::close(fd_);
  fd_ = -1;
}

expected<> rendezvous::open(const std::string &ip, std::uint32_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, ip.c_str(), &address.sin_addr) != 1)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "--listen-ip '%s': one IPv4 address is accepted", ip.c_str());
  owned_fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  owned_fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!listener || !event)
    return make_reason(CUDAQ_ERR_INTERNAL, "the system refused a socket: %s", std::strerror(errno));
  set(listener.get(), SOL_SOCKET, SO_REUSEADDR, 1); // connections of an earlier server may linger
  socklen_t size = sizeof(address);
  if (::bind(listener.get(), reinterpret_cast<const sockaddr *>(&address), sizeof(address)) != 0 ||
      ::listen(listener.get(), 16) != 0 ||
      ::getsockname(listener.get(), reinterpret_cast<sockaddr *>(&address), &size) != 0)
    return make_reason(CUDAQ_ERR_INTERNAL, "TCP port %u of %s: the system refused to listen: %s", port, ip.c_str(),
                       std::strerror(errno));
  callers_.reserve(kMaxWaiting); // serve needs no memory of its own
  listener_ = std::move(listener);
  event_ = std::move(event);
  port_ = ntohs(address.sin_port);
  return {};
}

void rendezvous::stop() {
  stop_.store(1);
  if (event_)
    (void)!::eventfd_write(event_.get(), 1);
}

void rendezvous::serve(const hooks &h) {
  while (!stopped()) {
    wait();
    if (peer_)
      read_peer();
    if (peer_ && !h.connected())
      peer_.reset(); // it sees that the connection has ended
    accept_callers(h);
    std::erase_if(callers_, [&](caller &c) { return !read_caller(c, h); });
  }
  callers_.clear();
  peer_.reset();
}

/// Until something has happened, or the period is over.
void rendezvous::wait() const {
  std::array<pollfd, 3 + kMaxWaiting> entries{};
  nfds_t count = 0;
  const auto add = [&](int fd) { entries[count++] = {fd, POLLIN, 0}; };
  add(event_.get());
  if (steady_clock::now() >= accept_from_)
    add(listener_.get());
  if (peer_)
    add(peer_.get());
  for (const caller &c : callers_)
    add(c.socket.get());
  ::poll(entries.data(), count, static_cast<int>(kPeriod.count()));
}

void rendezvous::accept_callers(const hooks &h) {
  if (steady_clock::now() < accept_from_)
    return;
  for (std::uint32_t n = 0; n < kMaxWaiting; ++n) {
    owned_fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM)
        return;
      accept_from_ = steady_clock::now() + kAcceptPause;
      return h.no_room();
    }
    set(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
    // A peer whose machine fails does not close its connection: the system finds out after 10 s.
    set(socket.get(), SOL_SOCKET, SO_KEEPALIVE, 1);
    set(socket.get(), IPPROTO_TCP, TCP_KEEPIDLE, 5);
    set(socket.get(), IPPROTO_TCP, TCP_KEEPINTVL, 1);
    set(socket.get(), IPPROTO_TCP, TCP_KEEPCNT, 5);
    if (callers_.size() == kMaxWaiting) {
      callers_.erase(callers_.begin());
      h.refused();
    }
    caller c;
    c.socket = std::move(socket);
    c.deadline = steady_clock::now() + kCallTime;
    callers_.push_back(std::move(c));
  }
}

/// Bytes that the peer sends after its numbers are ignored; the end of its connection is noticed.
void rendezvous::read_peer() {
  std::uint8_t ignored[256];
  const ssize_t n = ::recv(peer_.get(), ignored, sizeof(ignored), 0);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
    peer_.reset();
}

bool rendezvous::read_caller(caller &from, const hooks &h) {
  const ssize_t n = ::recv(from.socket.get(), from.bytes + from.size, sizeof(from.bytes) - from.size, 0);
  const bool nothing = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  if (nothing && steady_clock::now() < from.deadline)
    return true;
  from.size += n > 0 ? static_cast<std::size_t>(n) : 0;
  if (n > 0 && from.size < kBytes)
    return true;
  if (n <= 0 || !decide(from, h))
    h.refused();
  return false;
}

bool rendezvous::decide(caller &from, const hooks &h) {
  const rendezvous_numbers numbers = numbers_of(from.bytes);
  if (from.size != kBytes || !possible(numbers) || (peer_ && h.connected()))
    return false;
  std::optional<rendezvous_numbers> reply;
  try {
    reply = h.accept(numbers);
  } catch (const std::bad_alloc &) { // it is refused
  }
  if (!reply)
    return false;
  const std::uint32_t words[3] = {htonl(reply->qp), htonl(reply->rkey), htonl(reply->address)};
  // The send buffer of a new connection has room for 12 bytes. If the caller has closed it, read_peer() finds the end.
  (void)!::send(from.socket.get(), words, sizeof(words), MSG_NOSIGNAL | MSG_DONTWAIT);
  peer_ = std::move(from.socket);
  return true;
}

} // namespace cudaq::realtime::detail
