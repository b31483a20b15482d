// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace cudaq::qec::realtime {

/// "1 shot", "2 shots": for nouns whose plural has an s.
inline std::string number_of(std::uint64_t count, const char *noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

} // namespace cudaq::qec::realtime
