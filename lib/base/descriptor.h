// SPDX-License-Identifier: Apache-2.0
// Descriptors that live longer than the call that opens them.
#pragma once

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace cudaq::realtime::detail {

/// Moves a new descriptor above 2. In a program that was started with closed standard streams it would get the number
/// of one, and a line that the program prints would go into a socket or into the memory of a ring. Returns the
/// descriptor; -1 with errno if it is -1 or cannot be moved.
inline int above_standard_streams(int descriptor) noexcept {
  if (descriptor < 0 || descriptor > STDERR_FILENO)
    return descriptor;
  const int moved = ::fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int reason = errno;
  ::close(descriptor);
  errno = reason;
  return moved;
}

} // namespace cudaq::realtime::detail
