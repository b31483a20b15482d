// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decoder.h"
#include "lib/qec/decoders/residual_matcher.h"
#include "lib/qec/decoding/predecoder.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cudaq::qec::realtime {

/// A predecoder (or none) and a decoder on one shot, without a pipeline. For one thread; decode() does not allocate.
class offline_decoder {
public:
  /// `first` may be null: the decoder alone.
  offline_decoder(std::unique_ptr<predecoder> first, std::unique_ptr<decoder> second);

  /// `shot` and observables(): as the input of predecoder::run and the output of decoder::decode.
  decode_status decode(std::span<const std::uint8_t> shot) noexcept;
  [[nodiscard]] std::span<const std::uint8_t> observables() const noexcept {
    return {reinterpret_cast<const std::uint8_t *>(words_.data()), second_.inner().observable_bytes()};
  }
  [[nodiscard]] std::uint64_t decoded_events() const noexcept { return num_events_; } ///< of the last shot

private:
  std::unique_ptr<predecoder> first_;
  residual_matcher second_;
  std::vector<std::uint64_t> output_, events_;
  std::vector<std::uint64_t> words_; ///< the observables
  std::uint64_t num_events_ = 0;
};

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
