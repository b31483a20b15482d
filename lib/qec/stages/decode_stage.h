// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoders/residual_matcher.h"

#include "cudaq/qec/realtime/decode_response.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace cudaq::qec::realtime {

/// The CPU stage of a decoding pipeline: matches a predecoder's residual on the whole space-time graph. The answer is
/// the predecoder's logical frame XOR the observables of the matching. Use one instance per worker thread. No call
/// allocates.
class decode_stage {
public:
  /// `with` must be for the same model as the predecoder.
  explicit decode_stage(std::unique_ptr<decoder> with);

  [[nodiscard]] predecoder_layout layout() const noexcept { return matcher_.layout(); }
  [[nodiscard]] const char *decoder_name() const noexcept { return matcher_.inner().name(); }
  [[nodiscard]] const decoder &inner() const noexcept { return matcher_.inner(); }
  [[nodiscard]] std::uint64_t num_errors() const noexcept { return matcher_.inner().num_errors(); }
  [[nodiscard]] std::size_t response_bytes() const noexcept { return decode_response_bytes(layout().num_observables); }

  /// `predecoded`: see predecoder_output.h. Writes a DecodeResponse and, if the status is ok, the observable words;
  /// with the status `deadline` those of the best solution so far, if there is one. The deadline is a setting of the
  /// decoder.
  /// `size` gets the number of bytes written; 0 with buffer_too_small.
  /// `details`, `probabilities`: as residual_matcher::match.
  decode_status run(const void *predecoded, void *response, std::size_t max_size, std::size_t &size,
                    decode_details *details = nullptr, shot_probabilities probabilities = {}) noexcept;

  /// The same, and writes a response header directly before `response`, with the decode_status as its status; that
  /// of an answer after its deadline is `deadline`. A CPU stage that calls it returns FRAMED_RESPONSE. Returns the
  /// bytes of the result.
  std::size_t answer(const void *predecoded, void *response, std::size_t max_size) noexcept;

private:
  residual_matcher matcher_;
  std::vector<std::uint64_t> words_;
};

} // namespace cudaq::qec::realtime
