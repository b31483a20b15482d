// SPDX-License-Identifier: Apache-2.0
#include "contrib/gpu_roce/peer_exchange.h"

#include "lib/base/descriptor.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace cudaq::realtime::detail {
namespace {

constexpr std::chrono::seconds kCallerTime{1};

void close_if_open(int &descriptor) {
  if (descriptor >= 0)
    ::close(descriptor);
  descriptor = -1;
}

expected<> system_error(const char *call) {
  return make_reason(CUDAQ_ERR_INTERNAL, "--exchange-qp: %s: %s", call, std::strerror(errno));
}

} // namespace

peer_exchange::~peer_exchange() {
  close_if_open(caller_);
  close_if_open(listener_);
  close_if_open(cancelled_);
}

expected<> peer_exchange::listen(std::uint32_t port) {
  cancelled_ = above_standard_streams(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (cancelled_ < 0)
    return system_error("eventfd");
  listener_ = above_standard_streams(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (listener_ < 0)
    return system_error("socket");
  const int on = 1;
  ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::bind(listener_, reinterpret_cast<const sockaddr *>(&own), sizeof(own)) != 0 || ::listen(listener_, 4) != 0)
    return make_reason(CUDAQ_ERR_INTERNAL, "--exchange-port %u: %s", port, std::strerror(errno));
  socklen_t length = sizeof(own);
  if (::getsockname(listener_, reinterpret_cast<sockaddr *>(&own), &length) != 0)
    return system_error("getsockname");
  port_ = ntohs(own.sin_port);
  return {};
}

/// Waits until `descriptor` can be read.
expected<> peer_exchange::wait_for(int descriptor, steady_clock::time_point deadline) const {
  pollfd words[2] = {{cancelled_, POLLIN, 0}, {descriptor, POLLIN, 0}};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now()).count();
    const int ready = ::poll(words, 2, static_cast<int>(std::clamp<decltype(left)>(left, 0, 60000)));
    if (ready < 0 && errno != EINTR)
      return system_error("poll");
    if (ready > 0 && words[0].revents != 0)
      return {CUDAQ_ERR_STATE, "disconnect was called"};
    if (ready > 0)
      return {};
    if (left <= 0)
      return {CUDAQ_ERR_TIMEOUT, "no peer has sent its queue pair within --timeout"};
  }
}

bool peer_exchange::read_numbers(steady_clock::time_point deadline, peer_numbers &out) const {
  std::uint32_t words[3];
  auto *const bytes = reinterpret_cast<char *>(words);
  for (std::size_t have = 0; have < sizeof(words);) {
    if (wait_for(caller_, deadline).failed())
      return false;
    const ssize_t got = ::recv(caller_, bytes + have, sizeof(words) - have, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
      return false;
    have += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  out = {ntohl(words[0]), ntohl(words[1]), ntohl(words[2])};
  return true;
}

expected<> peer_exchange::wait(std::uint32_t only, steady_clock::time_point deadline, peer_numbers &out) {
  for (;;) {
    close_if_open(caller_);
    if (expected<> result = wait_for(listener_, deadline); result.failed())
      return result;
    caller_ = above_standard_streams(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (caller_ < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
        return system_error("accept"); // others mean that the caller has gone
      continue;
    }
    if (!read_numbers(std::min(deadline, steady_clock::now() + kCallerTime), out))
      continue;
    const bool valid = out.queue_pair != 0 && out.queue_pair <= 0xFFFFFF && out.address != 0;
    if (valid && (only == 0 || only == out.address))
      return {};
  }
}

expected<> peer_exchange::reply(std::uint32_t queue_pair, std::uint32_t key) {
  sockaddr_in own{};
  socklen_t length = sizeof(own);
  if (::getsockname(caller_, reinterpret_cast<sockaddr *>(&own), &length) != 0)
    return system_error("getsockname");
  const std::uint32_t words[3] = {htonl(queue_pair), htonl(key), own.sin_addr.s_addr};
  // The buffer of a new connection takes 12 bytes at once.
  if (::send(caller_, words, sizeof(words), MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof(words)))
    return system_error("send");
  close_if_open(caller_);
  close_if_open(listener_);
  return {};
}

void peer_exchange::cancel() {
  const std::uint64_t one = 1;
  if (cancelled_ >= 0) [[maybe_unused]]
    const ssize_t written = ::write(cancelled_, &one, sizeof(one));
}

} // namespace cudaq::realtime::detail
