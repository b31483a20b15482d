// SPDX-License-Identifier: Apache-2.0
// How much of a long sweep a test runs: a sample, or the whole sweep.
#pragma once

#include <cstdlib>
#include <string_view>

namespace cudaq::realtime::test {

/// CUDAQ_TEST_WHOLE=1 is set. Then each sweep runs whole; otherwise a long one runs a sample.
inline bool whole_sweeps() {
  const char *const set = std::getenv("CUDAQ_TEST_WHOLE");
  return set != nullptr && std::string_view(set) == "1";
}

template <class T>
T whole_or_sample(T whole, T sample) {
  return whole_sweeps() ? whole : sample;
}

} // namespace cudaq::realtime::test
