// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decoder.h"
#include "cudaq/realtime/detail/base/flag_word.h"

#include <chrono>
#include <cstdint>

namespace cudaq::qec::realtime {

/// The time of decode_control::deadline_ns.
inline std::uint64_t monotonic_ns() noexcept {
  using std::chrono::duration_cast, std::chrono::nanoseconds, std::chrono::steady_clock;
  return static_cast<std::uint64_t>(duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count());
}

/// Tells a decoder between its steps whether to go on. Without a deadline it reads no clock.
class stop_check {
public:
  stop_check() = default;
  explicit stop_check(const decode_control &control) noexcept : control_(control) {}
  /// That of details that may be null.
  explicit stop_check(const decode_details *details) noexcept
      : stop_check(details != nullptr ? details->control : decode_control{}) {}

  /// ok: the next step may begin. `deadline`: it would end too late, if it takes as long as the step since the last
  /// call. `cancelled`.
  [[nodiscard]] decode_status operator()() noexcept {
    if (control_.cancel != nullptr && cudaq::realtime::detail::load_relaxed(*control_.cancel) != 0)
      return decode_status::cancelled;
    if (control_.deadline_ns == kNoDeadline)
      return decode_status::ok;
    const std::uint64_t now = monotonic_ns(), step = last_ns_ == 0 ? 0 : now - last_ns_;
    last_ns_ = now;
    return now >= control_.deadline_ns || control_.deadline_ns - now < step ? decode_status::deadline
                                                                            : decode_status::ok;
  }

private:
  decode_control control_;
  std::uint64_t last_ns_ = 0; ///< of the last call; 0: none
};

} // namespace cudaq::qec::realtime
