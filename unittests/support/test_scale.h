// SPDX-License-Identifier: Apache-2.0
// How much of a long sweep a test runs: a sample, or the whole sweep. A sweep is the faults that a test injects, the
// messages of a load test, the sizes of a table.
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

/// CUDAQ_TEST_WHOLE=1 is set, as by scripts/test.sh --all. Then each sweep runs whole; otherwise a long one runs a
/// sample.
inline bool whole_sweeps() {
  const char *const set = std::getenv("CUDAQ_TEST_WHOLE");
  return set != nullptr && std::string_view(set) == "1";
}

template <class T>
T whole_or_sample(T whole, T sample) {
  return whole_sweeps() ? whole : sample;
}

/// For sweeps that are long only with a sanitizer or under an emulator.
inline bool samples_where_slow() { return (kSanitized || kEmulated) && !whole_sweeps(); }

/// The number in an environment variable, for campaigns that are longer than a test.
inline std::uint64_t number_from(const char *variable, std::uint64_t usual) {
  const char *const set = std::getenv(variable);
  return set == nullptr ? usual : std::strtoull(set, nullptr, 10);
}

/// How many of `full` messages or rounds a load test has. A sanitizer makes each of them about ten times as long.
inline std::uint32_t load_size(std::uint32_t full) {
  const std::uint32_t whole = kSanitized ? full / 10 : full;
  return samples_where_slow() ? std::max(whole / (kSanitized ? 5 : 20), std::min(whole, 2u)) : whole;
}

} // namespace cudaq::realtime::test
