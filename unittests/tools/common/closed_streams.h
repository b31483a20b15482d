// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace cudaq::realtime::tools::test {

/// Redirections of a shell that close the standard streams whose bits are set: bit 0 is stdin.
inline std::string closed(unsigned streams) {
  std::string text;
  for (unsigned number = 0; number < 3; ++number)
    if ((streams >> number & 1) != 0)
      text += number == 0 ? " <&-" : " " + std::to_string(number) + ">&-";
  return text;
}

} // namespace cudaq::realtime::tools::test
