// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace cudaq::qec::realtime {

struct predecoder_choice {
  std::string name;   ///< "local" (rule isolated) or "passthrough"
  std::string reason; ///< one sentence with the measured times, or why nothing was measured
};

/// Chooses the predecoder for a model by measuring on this machine: "local" only if it saves at least a twentieth of
/// the decoder's CPU time on shots that are sampled from the model. Takes about `budget`, and at most ten times as much
/// and one shot, plus the time to make the decoder and the predecoder once. A model that one of them does not take, and
/// a decoder that is too slow to be measured, get "passthrough", with the reason.
[[nodiscard]] predecoder_choice choose_predecoder(std::string_view dem_text, std::string_view decoder_name,
                                                  std::chrono::milliseconds budget = std::chrono::milliseconds(50));

} // namespace cudaq::qec::realtime
