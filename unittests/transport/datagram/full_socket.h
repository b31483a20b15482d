// SPDX-License-Identifier: Apache-2.0
// A system without room to send: datagram_dataplane_test.cpp has a sendmmsg in place of the system's.
#pragma once

#include <atomic>

namespace cudaq::realtime::test {

inline std::atomic<int> refused_sends{0}; ///< so many calls of sendmmsg find no room; a loopback socket is never full

/// While it lives, the system has no room to send, for the next `calls` attempts.
struct full_socket {
  explicit full_socket(int calls) { refused_sends.store(calls); }
  ~full_socket() { refused_sends.store(0); }
  full_socket(const full_socket &) = delete;
  full_socket &operator=(const full_socket &) = delete;
};

} // namespace cudaq::realtime::test
