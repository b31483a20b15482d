// SPDX-License-Identifier: Apache-2.0
// The messages of a playback, and what their answers must be.
#pragma once

#include "contrib/fpga_player/playback.h"

#include <vector>

namespace cudaq::realtime::tools {

struct played_messages {
  std::string name;
  std::vector<std::vector<std::uint8_t>> frames; ///< all of the same size
  /// The result of each answer; none if it is not checked. With --forward: the whole frame but for its time.
  std::vector<std::vector<std::uint8_t>> expected;
};

/// Throws usage_error.
played_messages make_messages(const playback_options &options);

struct recorded_answer {
  std::vector<std::uint8_t> bytes;
  std::uint64_t time_ns = 0;
};

/// "": the answer is right; else the reason. `number`: of the message.
std::string why_wrong(const playback_options &options, const played_messages &messages, std::uint32_t number,
                      const recorded_answer &answer);

} // namespace cudaq::realtime::tools
