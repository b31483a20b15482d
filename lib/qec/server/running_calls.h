// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/base/runner.h"

#include <cstdint>

namespace cudaq::qec::realtime {

/// Whether calls run, for a thread that waits for their end after it has written "closed" into a word.
///
/// Threads: any number of them make calls; those that ask are not held up by them.
class running_calls {
public:
  /// Lives as long as the call.
  class one {
  public:
    explicit one(running_calls &all) noexcept : all_(all) { all_.begun_.add(1); }
    ~one() { all_.ended_.add(); }
    one(const one &) = delete;
    one &operator=(const one &) = delete;

  private:
    running_calls &all_;
  };

  /// Calls that have ended. What they wrote is seen.
  [[nodiscard]] std::uint64_t ended() const noexcept { return ended_.value(); }
  /// No call has run since ended() returned this number. A call that begins later sees what the caller wrote before:
  /// to add 0 is a write, which that call's own addition reads. A load could be done before an earlier store.
  [[nodiscard]] bool none_since(std::uint64_t ended) const noexcept { return begun_.add(0) == ended; }

private:
  mutable cudaq::realtime::detail::shared_word<std::uint64_t> begun_;
  cudaq::realtime::detail::counter ended_;
};

} // namespace cudaq::qec::realtime
