// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/serve_signals.h"

#include "tools/common/interrupt.h"
#include "tools/common/report.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <stdexcept>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

namespace cudaq::realtime::tools {
namespace {

using namespace std::chrono_literals;
using steady_clock = std::chrono::steady_clock;

sigset_t served_signals() noexcept {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1})
    sigaddset(&set, number);
  return set;
}

/// Makes a descriptor readable.
void raise_event(int fd) noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd, &one, sizeof one); // full: readable all the same
}

[[noreturn]] void end_by(int number) noexcept {
  std::signal(number, SIG_DFL);
  const sigset_t set = served_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  raise(number);
  _exit(kExitCheckFailed);
}

/// The main thread may hold the locks of the streams, and stderr may be full: the text is written only if that cannot
/// block.
[[noreturn]] void end_at_the_limit() noexcept {
  constexpr char kText[] = "cudaq-realtime: the end took longer than its limit; the program ends without the rest\n";
  pollfd fd{STDERR_FILENO, POLLOUT, 0};
  if (poll(&fd, 1, 0) == 1) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText, sizeof kText - 1);
  }
  _exit(kExitCheckFailed);
}

} // namespace

struct signal_events::state {
  std::chrono::nanoseconds limit{};
  int signals = -1; ///< signalfd
  int events = -1;  ///< for the main thread
  int begun = -1;   ///< the end has begun without a signal
  std::atomic<bool> end{false}, reload{false}, go_back{false};

  ~state() {
    for (const int fd : {signals, events, begun})
      if (fd >= 0)
        close(fd);
  }
  [[noreturn]] void watch() noexcept {
    steady_clock::time_point begin{}, deadline = steady_clock::time_point::max();
    for (bool ending = false;;) {
      const auto left = deadline - steady_clock::now();
      if (ending && left <= 0ns)
        end_at_the_limit();
      const auto max_wait = std::min<std::chrono::milliseconds>(std::chrono::ceil<std::chrono::milliseconds>(left), 1h);
      pollfd fds[] = {{signals, POLLIN, 0}, {ending ? -1 : begun, POLLIN, 0}};
      poll(fds, 2, ending ? static_cast<int>(max_wait.count()) : -1);
      signalfd_siginfo info{};
      const bool arrived = read(signals, &info, sizeof info) == static_cast<ssize_t>(sizeof info);
      const int number = arrived ? static_cast<int>(info.ssi_signo) : 0;
      if (number == SIGHUP)
        reload = true;
      else if (number == SIGUSR1)
        go_back = true;
      else if (number != 0 && ending && steady_clock::now() - begin >= std::chrono::nanoseconds(kSignalRepetitionNs))
        end_by(number);
      else if (!ending && (number != 0 || fds[1].revents != 0)) {
        ending = end = true;
        begin = steady_clock::now();
        deadline = steady_clock::time_point::max() - begin < limit ? steady_clock::time_point::max() : begin + limit;
      }
      raise_event(events);
    }
  }
};

signal_events::signal_events(std::chrono::nanoseconds end_limit) : state_(std::make_shared<state>()) {
  std::signal(SIGPIPE, SIG_IGN);
  const sigset_t set = served_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  state_->limit = end_limit;
  state_->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  state_->events = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  state_->begun = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (state_->signals < 0 || state_->events < 0 || state_->begun < 0)
    throw std::runtime_error(std::string("signalfd, eventfd: ") + std::strerror(errno));
  std::thread([kept = state_] { kept->watch(); }).detach();
}

int signal_events::descriptor() const noexcept { return state_->events; }

void signal_events::wake() noexcept { raise_event(state_->events); }

void signal_events::clear() noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t taken = read(state_->events, &count, sizeof count); // none: nothing to clear
}

bool signal_events::end_is_wanted() const noexcept { return state_->end; }

bool signal_events::take_reload() noexcept { return state_->reload.exchange(false); }

bool signal_events::take_go_back() noexcept { return state_->go_back.exchange(false); }

void signal_events::begin_end() noexcept { raise_event(state_->begun); }

void notify_service_manager(const std::string &text) noexcept {
  const char *const path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = path == nullptr ? 0 : std::strlen(path);
  if (length < 2 || length >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
    return;
  std::memcpy(address.sun_path, path, length);
  if (path[0] == '@') // a name outside the file system
    address.sun_path[0] = '\0';
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  (void)sendto(fd, text.data(), text.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr *>(&address), size);
  close(fd);
}

} // namespace cudaq::realtime::tools
