// SPDX-License-Identifier: Apache-2.0
#include "lib/base/descriptor.h"
#include "lib/transport/client/frame_link.h"
#include "lib/transport/client/refusal_watch.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace cudaq::realtime::detail {
namespace {

constexpr std::size_t kLargestDatagram = 65536;
constexpr std::uint64_t kSecond = 1'000'000'000;

/// Connected sockets, one for each address of the server: only its datagrams arrive, and the system reports if nothing
/// listens there. One of them is used at a time; after such a report it is the next one.
class udp_link final : public frame_link {
public:
  udp_link(std::string where, std::vector<int> sockets, const refusal_watch &watch)
      : where_(std::move(where)), sockets_(std::move(sockets)), watch_(watch), incoming_(kLargestDatagram) {}
  ~udp_link() override {
    for (const int fd : sockets_)
      ::close(fd);
  }

  bool send(std::span<const std::uint8_t> frame, std::uint64_t now) override {
    sent_at_ = now;
    // The report of an earlier refusal takes the place of a datagram, which is therefore sent again.
    for (std::size_t tries = 0; tries <= sockets_.size(); ++tries) {
      if (::send(sockets_[used_], frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
        return true;
      if (errno != ECONNREFUSED) { // the same as a lost datagram
        error_ = errno;
        return errno != EAGAIN;
      }
      refused(now);
      elsewhere_ = in_row_ < sockets_.size(); // in the first round only: frames that are sent again are refused again
    }
    return true;
  }

  std::optional<arrival> receive(std::uint64_t now) override {
    const ssize_t n = ::recv(sockets_[used_], incoming_.data(), incoming_.size(), MSG_DONTWAIT);
    if (n < 0) {
      if (errno == ECONNREFUSED) {
        refused(now);
        elsewhere_ = in_row_ % sockets_.size() != 0;
      }
      return std::nullopt;
    }
    watch_.answered();
    in_row_ = refusals_ = 0;
    slot_size_ = static_cast<std::uint64_t>(n);
    return arrival{{incoming_.data(), static_cast<std::size_t>(n)}, std::nullopt};
  }

  void wait(std::uint64_t time_ns) override {
    const std::uint64_t ns = std::min(time_ns, 3600 * kSecond);
    const timespec time{static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
    pollfd ready{sockets_[used_], POLLIN, 0};
    (void)::ppoll(&ready, 1, &time, nullptr); // also after a signal the caller looks again
  }
  [[nodiscard]] expected<> begin() override {
    if (std::exchange(reported_, false)) { // the caller goes on: the server may start now
      watch_.answered();
      refusals_ = 0;
    }
    // A report that comes after the end of its request says nothing of this one.
    bool reported_late = false; // by the address in use
    for (std::size_t k = 0; k < sockets_.size(); ++k) {
      int error = 0;
      socklen_t length = sizeof(error);
      (void)::getsockopt(sockets_[k], SOL_SOCKET, SO_ERROR, &error, &length);
      reported_late = reported_late || (k == used_ && error == ECONNREFUSED && watch_.has_patience());
    }
    if (reported_late) // but nothing listened when that one was sent
      refused(sent_at_);
    in_row_ = 0;
    error_ = 0;
    // Now, and not in check(): a server that starts meanwhile would have the frame of this request.
    reported_ = reported_late && refusals_ >= sockets_.size() && watch_.is_absent();
    return reported_ ? absent() : expected<>{};
  }
  bool changed_address() override { return std::exchange(elsewhere_, false); }

  [[nodiscard]] expected<> check() override {
    reported_ = !elsewhere_ && in_row_ >= sockets_.size() && watch_.is_absent();
    if (reported_)
      return absent();
    if (error_ != 0 && error_ != EAGAIN && error_ != ENOBUFS && error_ != EINTR)
      return make_reason(CUDAQ_ERR_INTERNAL, "the system does not send to %s: %s", where_.c_str(),
                         std::strerror(std::exchange(error_, 0)));
    return {};
  }
  [[nodiscard]] std::uint64_t slot_size() const override { return slot_size_; }

private:
  [[nodiscard]] expected<> absent() const {
    return make_reason(CUDAQ_ERR_STATE, "no server listens at %s", where_.c_str());
  }
  void refused(std::uint64_t now) {
    watch_.refused(now);
    ++in_row_;
    ++refusals_;
    used_ = (used_ + 1) % sockets_.size();
  }

  const std::string where_;
  const std::vector<int> sockets_;
  std::size_t used_ = 0;   ///< its place in sockets_
  std::size_t in_row_ = 0; ///< refusals since the last answer, of the open requests
  bool elsewhere_ = false;
  // A request with a limit of microseconds ends before the patience does, and perhaps before the report of its refusal
  // comes. So refusals count across requests.
  std::size_t refusals_ = 0;  ///< since the last answer
  std::uint64_t sent_at_ = 0; ///< the last frame
  bool reported_ = false;     ///< begin() or check() said that no server listens
  int error_ = 0;             ///< of the last send that failed
  refusal_watch watch_;
  std::vector<std::uint8_t> incoming_;
  std::uint64_t slot_size_ = 0;
};

} // namespace

expected<std::unique_ptr<frame_link>> make_udp_link(const char *host, std::uint16_t port, std::uint64_t repeat_after_ns,
                                                    std::uint64_t patience_ns) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo *found = nullptr;
  if (const int error = ::getaddrinfo(host, std::to_string(port).c_str(), &hints, &found); error != 0)
    return make_reason(error == EAI_MEMORY || error == EAI_SYSTEM ? CUDAQ_ERR_INTERNAL : CUDAQ_ERR_INVALID_ARG,
                       "host '%s' has no address: %s", host, ::gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo *)> addresses(found, &::freeaddrinfo);
  std::vector<int> sockets;
  int reason = 0;
  for (const addrinfo *at = found; at != nullptr; at = at->ai_next) {
    const int fd =
        above_standard_streams(::socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol));
    if (fd >= 0 && ::connect(fd, at->ai_addr, at->ai_addrlen) == 0) {
      sockets.push_back(fd);
      continue;
    }
    reason = errno; // such as an address of IPv6 on a machine without it
    if (fd >= 0)
      ::close(fd);
  }
  const std::string where = std::string(host) + ", port " + std::to_string(port);
  if (sockets.empty())
    return make_reason(CUDAQ_ERR_INTERNAL, "the system refused a socket for %s: %s", where.c_str(),
                       std::strerror(reason));
  // Linux reports at most one refusal a second of another machine.
  const refusal_watch watch(std::max(2 * kSecond, 2 * std::min(repeat_after_ns, 3600 * kSecond)), patience_ns);
  return std::unique_ptr<frame_link>(std::make_unique<udp_link>(where, std::move(sockets), watch));
}

} // namespace cudaq::realtime::detail
