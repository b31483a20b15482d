// SPDX-License-Identifier: Apache-2.0
// A callback returns, or throws where its contract allows that. This file is the only one that ends the process: if the
// thread ends in a callback (pthread_exit, or a cancellation that the callback has enabled), no thread is left to
// answer the request, and no code can stop the unwinding.
#pragma once

#include <cstdint>
#include <cxxabi.h>
#include <exception>
#include <utility>

namespace cudaq::realtime::detail {

/// Writes "libcudaq-realtime: ..." from a printf format as one line to stderr, and aborts.
[[noreturn, gnu::format(printf, 1, 2), gnu::cold]] void end_process(const char *format, ...) noexcept;

/// The same for a callback: its name; or its kind and its function id; or its owner and its name there.
[[noreturn, gnu::cold]] void end_in_callback(const char *how, const char *name) noexcept;
[[noreturn, gnu::cold]] void end_in_callback(const char *how, const char *kind, std::uint32_t function_id) noexcept;
[[noreturn, gnu::cold]] void end_in_callback(const char *how, const char *owner, const char *name) noexcept;

inline constexpr char kEndedThread[] = "has ended its thread (pthread_exit or cancellation)";
inline constexpr char kThrew[] = "has thrown an exception";

/// Calls a callback; its exceptions pass. If its thread ends in the call, the process ends with `name`, as of
/// end_in_callback. Costs nothing if the call returns.
template <class Call, class... Name>
decltype(auto) must_return(Call &&call, const Name &...name) {
  try {
    return std::forward<Call>(call)();
  } catch (abi::__forced_unwind &) {
    end_in_callback(kEndedThread, name...);
  }
}

/// The same for a callback that must not throw, either.
template <class Call, class... Name>
decltype(auto) must_not_throw(Call &&call, const Name &...name) noexcept {
  try {
    return must_return(std::forward<Call>(call), name...);
  } catch (...) {
    end_in_callback(kThrew, name...);
  }
}

} // namespace cudaq::realtime::detail
