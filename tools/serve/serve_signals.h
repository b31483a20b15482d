// SPDX-License-Identifier: Apache-2.0
// How the system talks to the server: signals as events, and the notifications that systemd waits for.
#pragma once

#include <chrono>
#include <memory>
#include <string>

namespace cudaq::realtime::tools {

/// SIGTERM, SIGINT, SIGHUP and SIGUSR1 as events, and the promise that the end comes.
///
/// A thread of its own takes the signals, so that no state of the program delays them: not a file that cannot be read,
/// nor a plug-in or a write that does not return. The first SIGTERM or SIGINT begins the end. If the process is still
/// there when the limit has passed, the thread ends it with kExitCheckFailed. A second one ends it at once, by the
/// signal; within kSignalRepetitionNs it is taken for a repetition of the first, because timeout(1) sends a signal to a
/// process and then to its group. The thread lives until the process ends, whatever happens to this object.
///
/// These signals are blocked for the calling thread and for the threads that it starts later. SIGPIPE is ignored
/// from then on: a reader of the program's lines that ends must not end the server.
class signal_events {
public:
  /// Throws std::runtime_error, or std::system_error.
  explicit signal_events(std::chrono::nanoseconds end_limit);
  signal_events(const signal_events &) = delete;
  signal_events &operator=(const signal_events &) = delete;

  /// For poll: readable when a signal has arrived, or wake() was called, since the last call of clear().
  [[nodiscard]] int descriptor() const noexcept;
  void wake() noexcept; ///< any thread
  void clear() noexcept;
  /// The end has begun. Any thread.
  [[nodiscard]] bool end_is_wanted() const noexcept;
  /// A SIGHUP has arrived since the last call.
  bool take_reload() noexcept;
  /// The same of SIGUSR1.
  bool take_go_back() noexcept;
  /// The end begins without a signal; its limit counts from now.
  void begin_end() noexcept;

private:
  struct state;
  const std::shared_ptr<state> state_;
};

/// Sends a text ("READY=1") to the socket that $NOTIFY_SOCKET names. Does nothing if the variable is not set or the
/// socket is gone.
void notify_service_manager(const std::string &text) noexcept;

} // namespace cudaq::realtime::tools
