// SPDX-License-Identifier: Apache-2.0
// The text that cudaq_last_error_message returns, one per thread, and the guard that keeps exceptions inside the
// library.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#include "lib/base/callback.h"
#include "lib/base/expected.h"

#include <new>
#include <pthread.h>
#include <stdexcept>
#include <string>

namespace cudaq::realtime::detail {

/// A text so short that a std::string holds it without memory of its own.
inline constexpr char kOutOfMemory[] = "out of memory";

/// Makes a reason from a printf format. Does not throw: without memory for the text, the text says only that.
[[nodiscard, gnu::format(printf, 2, 3)]] reason make_reason(cudaq_status_t status, const char *format, ...) noexcept;

/// Stores "function: text" as the calling thread's last error and returns the status. Does not allocate.
cudaq_status_t report(const char *function, cudaq_status_t status, const char *text) noexcept;

const char *last_error_text() noexcept;

/// While it lives, no system call of the calling thread is a cancellation point. A pthread_cancel of the thread takes
/// effect later, in the program's own code.
class cancellation_disabled {
public:
  cancellation_disabled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~cancellation_disabled() { pthread_setcancelstate(before_, nullptr); }
  cancellation_disabled(const cancellation_disabled &) = delete;
  cancellation_disabled &operator=(const cancellation_disabled &) = delete;

private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

/// Runs the body of an API function that makes no system call, so that it has no cancellation point. A returned reason
/// becomes the status and the last error text. An exception becomes CUDAQ_ERR_INTERNAL; none leaves it. A callback on
/// this thread that ends the thread ends the process.
template <class Body>
cudaq_status_t guarded_brief(const char *function, Body &&body) {
  try {
    const expected<> result = must_return(body, function);
    return result.failed() ? report(function, result.status(), result.text().c_str()) : CUDAQ_OK;
  } catch (const std::bad_alloc &) {
    return report(function, CUDAQ_ERR_INTERNAL, kOutOfMemory);
  } catch (const std::exception &e) {
    return report(function, CUDAQ_ERR_INTERNAL, e.what());
  } catch (...) {
    return report(function, CUDAQ_ERR_INTERNAL, "a callback threw an exception that is not a std::exception");
  }
}

/// The same for all other API functions.
template <class Body>
cudaq_status_t guarded(const char *function, Body &&body) {
  const cancellation_disabled during_the_call;
  return guarded_brief(function, body);
}

} // namespace cudaq::realtime::detail
