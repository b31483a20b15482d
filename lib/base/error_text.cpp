// SPDX-License-Identifier: Apache-2.0
#include "lib/base/error_text.h"

#include <cstdarg>
#include <cstdio>

namespace cudaq::realtime::detail {
namespace {
// A plain array: storing an error must not allocate, because the error may be that there is no memory.
thread_local char last_error[512];
} // namespace

reason make_reason(cudaq_status_t status, const char *format, ...) noexcept {
  char text[sizeof(last_error)];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  try {
    return {status, text};
  } catch (const std::bad_alloc &) { // the status is right all the same
    return {status, kOutOfMemory};
  }
}

cudaq_status_t report(const char *function, cudaq_status_t status, const char *text) noexcept {
  std::snprintf(last_error, sizeof(last_error), "%s: %s", function, text);
  return status;
}

const char *last_error_text() noexcept { return last_error; }

} // namespace cudaq::realtime::detail
