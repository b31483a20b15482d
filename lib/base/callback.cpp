// SPDX-License-Identifier: Apache-2.0
#include "lib/base/callback.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace cudaq::realtime::detail {

// By one write, so that the lines of other threads do not mix with it, and without a lock that such a thread may hold.
void end_process(const char *format, ...) noexcept {
  char line[512] = "libcudaq-realtime: ";
  const std::size_t prefix = sizeof("libcudaq-realtime: ") - 1;
  va_list args;
  va_start(args, format);
  const int length = std::vsnprintf(line + prefix, sizeof(line) - prefix - 1, format, args);
  va_end(args);
  const std::size_t room = sizeof(line) - prefix - 2;
  std::size_t end = prefix + std::min(room, static_cast<std::size_t>(std::max(length, 0)));
  line[end++] = '\n';
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, end);
  std::abort();
}

void end_in_callback(const char *how, const char *name) noexcept {
  end_process("%s %s; a callback must return", name, how);
}

void end_in_callback(const char *how, const char *kind, std::uint32_t function_id) noexcept {
  end_process("%s 0x%08x %s; a callback must return", kind, function_id, how);
}

void end_in_callback(const char *how, const char *owner, const char *name) noexcept {
  end_process("%s: %s %s; a callback must return", owner, name, how);
}

} // namespace cudaq::realtime::detail
