// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decoder.h"
#include "lib/qec/decoders/residual_matcher.h"
#include "lib/qec/decoding/predecoder.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

/// A predecoder (or none) and a decoder on one shot, without a pipeline. For one thread; decode() does not allocate.
class offline_decoder {
public:
  /// `first` may be null: the decoder alone. Throws std::invalid_argument if the two have different numbers of
  /// detectors.
  offline_decoder(std::unique_ptr<predecoder> first, std::unique_ptr<decoder> second);

  /// `shot` and observables(): as the input of predecoder::run and the output of decoder::decode.
  /// `details`, `probabilities`: as residual_matcher::match. A predecoder knows the probabilities of the model only:
  /// not_supported.
  decode_status decode(std::span<const std::uint8_t> shot, decode_details *details = nullptr,
                       shot_probabilities probabilities = {}) noexcept;
  /// Whether observables() are those of a solution: decoder::has_solution() of the last shot.
  [[nodiscard]] bool has_solution() const noexcept { return has_solution_; }
  /// decoder::is_late() of the last shot.
  [[nodiscard]] bool is_late() const noexcept { return is_late_; }
  [[nodiscard]] const decoder &inner() const noexcept { return second_.inner(); }
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
  bool has_solution_ = false, is_late_ = false;
};

} // namespace cudaq::qec::realtime
