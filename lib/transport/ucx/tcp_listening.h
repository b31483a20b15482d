// SPDX-License-Identifier: Apache-2.0
// The TCP sockets of UCX's listener, which UCX does not name.
#pragma once

#include <netinet/in.h>

namespace cudaq::realtime::detail {

/// Ends what a listener of UCX at this address and port has accepted; it accepts nothing more. UCX closes these sockets
/// soon, on its thread. False: it has closed all, or the listener is not of TCP. One thread at a time.
///
/// Call it until it returns false, then destroy the listener. UCX (1.13, and 1.20 still) uses a listener also after its
/// end, when a connection that was accepted sends its request: then the process crashes. A router that connects just
/// then is enough, and so is any program that connects and waits.
bool end_tcp_listening(const sockaddr_in &address) noexcept;

} // namespace cudaq::realtime::detail
