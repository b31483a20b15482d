// SPDX-License-Identifier: Apache-2.0
// How a peer and the provider tell each other their numbers: over TCP, three words each, the caller first.
//
// Any program that reaches the port can connect to it. A connection that does not bring exactly 12 bytes within 2 s, or
// whose numbers no queue pair can have, is closed without a reply, and delays no other caller.
#pragma once

#include "lib/base/descriptor.h"
#include "lib/base/error_text.h"
#include "lib/base/runner.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace cudaq::realtime::detail {

struct rendezvous_numbers {
  std::uint32_t qp = 0;
  std::uint32_t rkey = 0;
  std::uint32_t address = 0; ///< IPv4: 10.0.0.2 is 0x0A000002
};

class owned_fd {
public:
  owned_fd() = default;
  explicit owned_fd(int fd) : fd_(above_standard_streams(fd)) {}
  owned_fd(owned_fd &&other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  owned_fd &operator=(owned_fd &&other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~owned_fd() { reset(); }
  void reset();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

private:
  int fd_ = -1;
};

class rendezvous {
public:
  struct hooks {
    /// The reply to a caller; none: it is refused. Called by serve, and may wait.
    std::function<std::optional<rendezvous_numbers>(const rendezvous_numbers &)> accept;
    /// The connection with the last caller that was taken exists. While it does, and the caller keeps its TCP
    /// connection open, others are refused.
    std::function<bool()> connected;
    std::function<void()> refused; ///< counts
    std::function<void()> no_room; ///< counts: the system gave no socket for a caller, who waits
  };

  /// Listens: from now on a caller can connect, and waits until serve runs.
  expected<> open(const std::string &ip, std::uint32_t port);
  std::uint32_t port() const { return port_; }
  /// Serves callers until stop.
  void serve(const hooks &h);
  /// Any thread, at any time.
  void stop();
  bool stopped() const { return stop_.load() != 0; }

  static constexpr std::uint32_t kMaxWaiting = 8; ///< callers that have not sent their numbers yet
  static constexpr auto kCallTime = std::chrono::seconds(2);
  /// After the system gave no socket. A caller that waits makes the listener ready all the time.
  static constexpr auto kAcceptPause = std::chrono::milliseconds(100);

private:
  struct caller {
    owned_fd socket;
    steady_clock::time_point deadline;
    std::size_t size = 0;
    std::uint8_t bytes[13] = {}; ///< one more than a caller may send
  };

  void wait() const;
  void accept_callers(const hooks &h);
  void read_peer();
  /// False: the caller is done.
  bool read_caller(caller &from, const hooks &h);
  bool decide(caller &from, const hooks &h);

  owned_fd listener_, event_;
  std::uint32_t port_ = 0;
  shared_word<std::uint32_t> stop_;
  std::vector<caller> callers_;          ///< the oldest first
  steady_clock::time_point accept_from_; ///< not before: the system had no socket
  owned_fd peer_;                        ///< the open TCP connection of the caller that was taken last
};

} // namespace cudaq::realtime::detail
