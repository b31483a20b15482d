// SPDX-License-Identifier: Apache-2.0
// The text that cudaq_last_error_message returns, one per thread, and the guard that keeps exceptions inside the
// library.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

#include <new>
#include <stdexcept>
#include <string>

namespace cudaq::realtime::detail {

/// The result of a validation rule, or of a step that can fail: CUDAQ_OK, or another status and the reason as text. In
/// a condition it is true if there is a reason.
struct status_or_reason {
  cudaq_status_t status = CUDAQ_OK;
  std::string text;
  explicit operator bool() const { return status != CUDAQ_OK; }
};

/// Makes a reason from a printf format.
[[gnu::format(printf, 2, 3)]] status_or_reason make_reason(cudaq_status_t status, const char *format, ...);

/// Stores "function: text" as the calling thread's last error and returns the status.
cudaq_status_t report(const char *function, const status_or_reason &what) noexcept;

const char *last_error_text() noexcept;

/// Runs the body of an API function. A returned reason becomes the status and the last error text. A std::exception
/// becomes CUDAQ_ERR_INTERNAL.
template <class Body>
cudaq_status_t guarded(const char *function, Body &&body) noexcept {
  try {
    const status_or_reason found = body();
    return found ? report(function, found) : CUDAQ_OK;
  } catch (const std::bad_alloc &) {
    return report(function, {CUDAQ_ERR_INTERNAL, "out of memory"});
  } catch (const std::exception &e) {
    return report(function, {CUDAQ_ERR_INTERNAL, e.what()});
  }
}

} // namespace cudaq::realtime::detail
