// SPDX-License-Identifier: Apache-2.0
// Texts about the errors of a model, which name it (lib/qec/decoding/model_text_file.h).
#pragma once

#include "lib/qec/decoding/model_text_file.h"

#include <cstdio>
#include <string>
#include <string_view>

namespace cudaq::qec::realtime::test {

/// The two lines of the head. `first`: "cudaq-realtime-heralds 1" or "cudaq-realtime-flags 1".
inline std::string head_of_text(const std::string &first, std::string_view model) {
  char number[16];
  std::snprintf(number, sizeof number, "%08x", static_cast<unsigned>(crc32_of(model)));
  return first + "\nmodel " + number + "\n";
}

/// A list of heralds for this model: its lines after the head.
inline std::string heralds_text(std::string_view model, const std::string &lines) {
  return head_of_text("cudaq-realtime-heralds 1", model) + lines;
}

} // namespace cudaq::qec::realtime::test
