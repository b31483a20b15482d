// SPDX-License-Identifier: Apache-2.0
// Descriptors of files: their number, and calls that a signal may interrupt.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
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

/// Reads so many bytes that begin at `at`; the position of the file stays. False: it ends before, or cannot be read.
/// Not by mmap: a file that becomes shorter would end the process.
inline bool read_at(int file, void *to, std::size_t bytes, std::uint64_t at) noexcept {
  for (auto *next = static_cast<std::byte *>(to); bytes != 0;) {
    const ssize_t got = ::pread(file, next, bytes, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return false;
    next += got;
    bytes -= static_cast<std::size_t>(got);
    at += static_cast<std::uint64_t>(got);
  }
  return true;
}

/// Memory or disk for the first `bytes` bytes of a file, now: a page of a mapping without room would end the process by
/// a signal when it is first written. Returns 0, or the number of the error.
inline int reserve_bytes(int file, std::uint64_t bytes) noexcept {
  int error = EINTR;
  while (error == EINTR) // what is reserved stays so
    error = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));
  return error;
}

} // namespace cudaq::realtime::detail
