// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ucx/tcp_listening.h"

#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace cudaq::realtime::detail {
namespace {

bool has(int socket, int option, int value) noexcept {
  int found = 0;
  socklen_t bytes = sizeof found;
  return getsockopt(socket, SOL_SOCKET, option, &found, &bytes) == 0 && found == value;
}

bool is_at(int descriptor, const sockaddr_in &address) noexcept {
  sockaddr_in local{};
  socklen_t bytes = sizeof local;
  return getsockname(descriptor, reinterpret_cast<sockaddr *>(&local), &bytes) == 0 && local.sin_family == AF_INET &&
         local.sin_port == address.sin_port && has(descriptor, SO_TYPE, SOCK_STREAM) &&
         (address.sin_addr.s_addr == INADDR_ANY || local.sin_addr.s_addr == address.sin_addr.s_addr);
}

/// Closes the socket and leaves its number in use, with a socket that does nothing. After a shutdown instead, UCX's
/// thread would call accept in an endless loop.
void replace(int number) noexcept {
  const int nothing = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (nothing < 0)
    return;
  dup3(nothing, number, O_CLOEXEC);
  close(nothing);
}

} // namespace

bool end_tcp_listening(const sockaddr_in &address) noexcept {
  DIR *const descriptors = opendir("/proc/self/fd");
  if (descriptors == nullptr)
    return false;
  bool open = false;
  while (const dirent *const entry = readdir(descriptors)) {
    // A copy, because UCX's thread may close the number, and another thread open something else with it.
    const int number = std::atoi(entry->d_name), copy = fcntl(number, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
      continue;
    if (is_at(copy, address)) {
      open = true; // also if it is the listening one: something may have been accepted meanwhile
      if (has(copy, SO_ACCEPTCONN, 1))
        replace(number); // it stays open until the listener is destroyed
      else
        shutdown(copy, SHUT_RDWR);
    }
    close(copy);
  }
  closedir(descriptors);
  return open;
}

} // namespace cudaq::realtime::detail
