// SPDX-License-Identifier: Apache-2.0
// The TCP sockets of UCX's listener, which UCX does not name.
#pragma once

#include "lib/base/expected.h"

#include <dirent.h>
#include <netinet/in.h>

namespace cudaq::realtime::detail {

/// Finds the sockets of a listener among the descriptors of this process. It keeps two descriptors from reserve() on:
/// so the end of the listener needs no free one. One thread at a time.
class tcp_listening {
public:
  tcp_listening() = default;
  tcp_listening(const tcp_listening &) = delete;
  tcp_listening &operator=(const tcp_listening &) = delete;
  ~tcp_listening();

  /// First. Fails if no descriptor is free, or if there is no /proc.
  expected<> reserve();
  /// When the listener listens, with its address and port. Fails if the descriptors cannot be read.
  expected<> find(const sockaddr_in &address);
  /// find() has succeeded.
  [[nodiscard]] bool known() const noexcept { return known_; }
  /// The descriptor of the socket that listens. -1: there is none, the listener is not of TCP.
  [[nodiscard]] int listener() const noexcept { return listener_; }
  /// Shuts down the connections that the listener has accepted; their owner closes them. True: it has closed all.
  /// False: it has not yet, or they could not be looked for. Only meaningful while nothing more is accepted.
  bool end_accepted() noexcept;

private:
  template <class Visit>
  bool visit_sockets(Visit &&visit) noexcept;

  DIR *descriptors_ = nullptr; ///< /proc/self/fd
  int copy_ = -1;              ///< of the socket that is looked at, else of descriptors_
  int listener_ = -1;
  bool known_ = false;
  sockaddr_in address_{};
};

} // namespace cudaq::realtime::detail
