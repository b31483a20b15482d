// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/residual_matcher.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cudaq::qec::realtime {

residual_matcher::residual_matcher(std::unique_ptr<decoder> with)
    : decoder_(std::move(with)), layout_{static_cast<std::uint32_t>(decoder_->num_detectors()),
                                         static_cast<std::uint32_t>(decoder_->num_observables())},
      events_(layout_.num_detectors) {}

decode_status residual_matcher::match(const void *predecoded, std::span<std::uint64_t> words, decode_details *details,
                                      shot_probabilities probabilities) noexcept {
  const auto *const from = static_cast<const std::uint8_t *>(predecoded);
  predecoder_header header;
  std::memcpy(&header, from, sizeof(header));
  if (header.status != 0)
    return static_cast<decode_status>(header.status);
  if (header.num_events > layout_.num_detectors)
    return decode_status::duplicate_detector_index;
  for (std::size_t i = 0; i < header.num_events; ++i) {
    std::uint32_t event;
    std::memcpy(&event, from + layout_.events_offset() + i * sizeof(event), sizeof(event));
    events_[i] = event;
  }
  std::ranges::fill(words, 0); // the decoder writes whole bytes, not whole words
  const std::span<std::uint8_t> bytes(reinterpret_cast<std::uint8_t *>(words.data()), words.size_bytes());
  const auto events = std::span(events_).first(header.num_events);
  const decode_status status = decoder_->decode(events, bytes, probabilities, details);
  if (!decoder_->has_solution())
    return status;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::uint64_t frame;
    std::memcpy(&frame, from + layout_.frame_offset() + i * sizeof(frame), sizeof(frame));
    words[i] ^= frame;
  }
  return status;
}

} // namespace cudaq::qec::realtime
