// SPDX-License-Identifier: Apache-2.0
#include "lib/base/error_text.h"

#include <cstdarg>
#include <cstdio>

namespace cudaq::realtime::detail {
namespace {
// A plain array: storing an error must not allocate, because the error may be that there is no memory.
thread_local char last_error[512];
} // namespace

status_or_reason make_reason(cudaq_status_t status, const char *format, ...) {
  char text[sizeof(last_error)];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  return {status, text};
}

cudaq_status_t report(const char *function, const status_or_reason &what) noexcept {
  std::snprintf(last_error, sizeof(last_error), "%s: %s", function, what.text.c_str());
  return what.status;
}

const char *last_error_text() noexcept { return last_error; }

} // namespace cudaq::realtime::detail
