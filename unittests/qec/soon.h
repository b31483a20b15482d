// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace cudaq::qec::realtime::test {

/// A deadline for what happens within milliseconds, unless the machine's cores are busy.
inline std::chrono::steady_clock::time_point soon(int seconds = 60) {
  return std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
}

} // namespace cudaq::qec::realtime::test
