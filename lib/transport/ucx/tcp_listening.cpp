// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ucx/tcp_listening.h"

#include "lib/base/descriptor.h"
#include "lib/base/error_text.h"

#include <cstdlib>
#include <cstring>
#include <sys/socket.h>

namespace cudaq::realtime::detail {
namespace {

bool has(int socket, int option, int value) noexcept {
  int found = 0;
  socklen_t bytes = sizeof found;
  return getsockopt(socket, SOL_SOCKET, option, &found, &bytes) == 0 && found == value;
}

/// The own address of a TCP socket; port 0: it is none, or has none.
sockaddr_in own_address(int descriptor) noexcept {
  sockaddr_in own{};
  socklen_t bytes = sizeof own;
  if (getsockname(descriptor, reinterpret_cast<sockaddr *>(&own), &bytes) != 0 || own.sin_family != AF_INET ||
      !has(descriptor, SO_TYPE, SOCK_STREAM))
    return {};
  return own;
}

expected<> unreadable() {
  return make_reason(CUDAQ_ERR_INTERNAL, "the descriptors of this process cannot be read from /proc/self/fd: %s",
                     std::strerror(errno));
}

} // namespace

tcp_listening::~tcp_listening() {
  if (copy_ >= 0)
    ::close(copy_);
  if (descriptors_ != nullptr)
    closedir(descriptors_);
}

expected<> tcp_listening::reserve() {
  const int folder = above_standard_streams(::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder < 0)
    return unreadable();
  if (descriptors_ = fdopendir(folder); descriptors_ == nullptr) {
    const expected<> result = unreadable();
    ::close(folder);
    return result;
  }
  if (copy_ = ::fcntl(folder, F_DUPFD_CLOEXEC, STDERR_FILENO + 1); copy_ < 0)
    return unreadable();
  return {};
}

/// Calls `visit` with the number of each TCP socket at the port, with a copy of it, and with its own address. False:
/// not all descriptors were looked at.
template <class Visit>
bool tcp_listening::visit_sockets(Visit &&visit) noexcept {
  rewinddir(descriptors_);
  const auto next = [this] {
    errno = 0; // at the end of the folder it stays 0
    return readdir(descriptors_);
  };
  bool sees_itself = false; // the folder is empty if the process's first thread has ended
  while (const dirent *const entry = next()) {
    const int number = std::atoi(entry->d_name);
    sees_itself = sees_itself || number == dirfd(descriptors_);
    // Of files no copies: at the end of one the system takes the process's locks of the file away.
    if (entry->d_name[0] == '.' || number == copy_ || own_address(number).sin_port != address_.sin_port)
      continue;
    // A copy, because the number's owner may close it, and another thread open something else with it.
    if (dup3(number, copy_, O_CLOEXEC) < 0)
      continue;
    if (const sockaddr_in own = own_address(copy_); own.sin_port == address_.sin_port)
      visit(number, copy_, own.sin_addr.s_addr);
  }
  const bool whole = errno == 0 && sees_itself;
  // Ends the last copy. It fails too where copies failed: if the program has lowered its limit below their number.
  return dup3(dirfd(descriptors_), copy_, O_CLOEXEC) >= 0 && whole;
}

expected<> tcp_listening::find(const sockaddr_in &address) {
  address_ = address;
  known_ = visit_sockets([this](int number, int copy, in_addr_t own) {
    if (own == address_.sin_addr.s_addr && has(copy, SO_ACCEPTCONN, 1)) // the system allows one
      listener_ = number;
  });
  return known_ ? expected<>() : unreadable();
}

bool tcp_listening::end_accepted() noexcept {
  bool open = false;
  const bool whole =
      known_ && visit_sockets([&](int, int copy, in_addr_t own) {
        if ((address_.sin_addr.s_addr != INADDR_ANY && own != address_.sin_addr.s_addr) || has(copy, SO_ACCEPTCONN, 1))
          return;
        open = true;
        shutdown(copy, SHUT_RDWR);
      });
  return whole && !open;
}

} // namespace cudaq::realtime::detail
