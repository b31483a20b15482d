// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/serve_signals.h"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <stdexcept>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace cudaq::realtime::tools {
namespace {

sigset_t served_signals() noexcept {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP})
    sigaddset(&set, number);
  return set;
}

} // namespace

signal_events::signal_events() {
  std::signal(SIGPIPE, SIG_IGN);
  const sigset_t set = served_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd_ < 0)
    throw std::runtime_error(std::string("signalfd: ") + std::strerror(errno));
}

signal_events::~signal_events() {
  close(fd_);
  const sigset_t set = served_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

int signal_events::next() noexcept {
  if (end_ != 0)
    return std::exchange(end_, 0);
  return std::exchange(reload_, false) ? SIGHUP : read_one();
}

bool signal_events::end_is_wanted() noexcept {
  for (int signal = 0; end_ == 0 && (signal = read_one()) != 0;) {
    if (signal == SIGHUP)
      reload_ = true;
    else
      end_ = signal;
  }
  return end_ != 0;
}

int signal_events::read_one() noexcept {
  signalfd_siginfo info{};
  return read(fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info) ? static_cast<int>(info.ssi_signo) : 0;
}

void signal_events::ignore_repetitions(std::chrono::milliseconds time) noexcept {
  const auto end = std::chrono::steady_clock::now() + time;
  for (;;) {
    while (next() != 0) {
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    pollfd fd{fd_, POLLIN, 0};
    if (left <= 0 || poll(&fd, 1, static_cast<int>(left)) == 0)
      return;
  }
}

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
