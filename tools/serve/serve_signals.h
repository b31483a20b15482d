// SPDX-License-Identifier: Apache-2.0
// How the system talks to the server: signals as events, and the notifications that systemd waits for.
#pragma once

#include <chrono>
#include <string>

namespace cudaq::realtime::tools {

/// Blocks SIGTERM, SIGINT and SIGHUP for this thread and for the threads that it starts later, and reads them from a
/// descriptor. The destructor unblocks. SIGPIPE is ignored from then on: a reader of the program's lines that ends must
/// not end the server.
class signal_events {
public:
  /// Throws std::runtime_error.
  signal_events();
  signal_events(const signal_events &) = delete;
  signal_events &operator=(const signal_events &) = delete;
  ~signal_events();

  /// For poll.
  [[nodiscard]] int descriptor() const noexcept { return fd_; }
  /// The next signal, or 0 if there is none.
  int next() noexcept;
  /// SIGTERM or SIGINT has arrived. The signals stay for next().
  bool end_is_wanted() noexcept;
  /// Takes the signals that arrive within this time, and ignores them: timeout(1) sends a signal to a process and then
  /// to its group, which is not a second wish.
  void ignore_repetitions(std::chrono::milliseconds time) noexcept;

private:
  int read_one() noexcept;

  int fd_ = -1;
  int end_ = 0;         ///< SIGTERM or SIGINT, read and not yet returned
  bool reload_ = false; ///< SIGHUP, likewise
};

/// Sends a text ("READY=1") to the socket that $NOTIFY_SOCKET names. Does nothing if the variable is not set or the
/// socket is gone.
void notify_service_manager(const std::string &text) noexcept;

} // namespace cudaq::realtime::tools
