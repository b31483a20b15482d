// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decoder.h"

#include "lib/qec/decoding/predecoder_output.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

/// A decoder after a predecoder: it decodes the residual, and adds the logical frame. One thread. It allocates nothing
/// itself.
class residual_matcher {
public:
  explicit residual_matcher(std::unique_ptr<decoder> with);

  [[nodiscard]] predecoder_layout layout() const noexcept { return layout_; }
  [[nodiscard]] const decoder &inner() const noexcept { return *decoder_; }
  [[nodiscard]] decoder &inner() noexcept { return *decoder_; }

  /// `predecoded`: a predecoder's output (predecoder_output.h); it may be anything that a device wrote, so it is
  /// checked. `words`: layout().frame_words() words; gets the flipped observables, observable k in bit k % 64 of word
  /// k / 64. Not valid with an error status, unless inner().has_solution(). `details`: for the decoder, may be null.
  /// `probabilities`: that the shot replaces, only without a predecoder that knows those of the model.
  decode_status match(const void *predecoded, std::span<std::uint64_t> words, decode_details *details = nullptr,
                      shot_probabilities probabilities = {}) noexcept;

private:
  std::unique_ptr<decoder> decoder_;
  predecoder_layout layout_;
  std::vector<std::uint64_t> events_;
};

} // namespace cudaq::qec::realtime
