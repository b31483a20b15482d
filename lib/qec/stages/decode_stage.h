// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/decoder.h"
#include "lib/qec/decoding/predecoder_output.h"

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

  [[nodiscard]] predecoder_layout layout() const noexcept { return layout_; }
  [[nodiscard]] std::size_t response_bytes() const noexcept { return decode_response_bytes(layout_.num_observables); }

  /// `predecoded`: see predecoder_output.h. Writes a DecodeResponse and, if the status is ok, the observable words.
  /// `size` gets the number of bytes written; 0 with buffer_too_small.
  decode_status run(const void *predecoded, void *response, std::size_t max_size, std::size_t &size) noexcept;

  /// The same in the form of a cpu_stage_callback: also writes a response header directly before `response`, with the
  /// decode_status as its status. Returns the bytes of the result.
  std::size_t answer(const void *predecoded, void *response, std::size_t max_size) noexcept;

private:
  decode_status match(const std::uint8_t *predecoded, std::vector<std::uint64_t> &words) noexcept;

  std::unique_ptr<decoder> decoder_;
  predecoder_layout layout_;
  std::vector<std::uint64_t> events_;
  std::vector<std::uint64_t> words_;
};

} // namespace cudaq::qec::realtime
