// SPDX-License-Identifier: Apache-2.0
// How long the sweeps of a test are: the faults that are injected, the messages of a load test, the sizes of a table.
//   release                                         the whole sweep
//   a variant that is slow (a sanitizer, qemu)      a sample; with CUDAQ_TEST_SWEEPS=whole in the environment the whole
//                                                   sweep: scripts/test.sh --all sets it
// docs/testing.md lists what is cut.
#pragma once

#include "unittests/support/sanitized.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace cudaq::realtime::test {

/// True if the program runs under an instruction emulator. Times measured there do not apply to the library.
#if defined(CUDAQ_TEST_EMULATED)
inline constexpr bool kEmulated = true;
#else
inline constexpr bool kEmulated = false;
#endif

/// Whether this program runs samples.
inline bool sampled() {
  const char *const sweeps = std::getenv("CUDAQ_TEST_SWEEPS");
  return (kSanitized || kEmulated) && (sweeps == nullptr || std::string_view(sweeps) != "whole");
}

/// The length of a sweep, or the step between its cases.
template <class Count>
Count whole_or_sample(Count whole, Count sample) {
  return sampled() ? sample : whole;
}

/// How many of `full` messages or rounds a load test has. A sanitizer costs as much as ten times of them.
inline std::uint32_t load_size(std::uint32_t full) {
  const std::uint32_t whole = kSanitized ? full / 10 : full;
  return whole_or_sample(whole, std::max(whole / (kSanitized ? 5 : 20), std::min(whole, 2u)));
}

} // namespace cudaq::realtime::test
