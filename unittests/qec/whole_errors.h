// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace cudaq::qec::realtime::test {

/// The text that Stim writes without its option --decompose_errors, from one with it.
inline std::string whole_errors(std::string dem) {
  for (std::size_t at = 0; (at = dem.find(" ^", at)) != std::string::npos;)
    dem.erase(at, 2);
  return dem;
}

} // namespace cudaq::qec::realtime::test
