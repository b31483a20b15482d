// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/offline_decoder.h"

#include "lib/qec/decoding/event_bits.h"

#include <cstring>
#include <stdexcept>
#include <utility>

namespace cudaq::qec::realtime {

offline_decoder::offline_decoder(std::unique_ptr<predecoder> first, std::unique_ptr<decoder> second)
    : first_(std::move(first)), second_(std::move(second)), words_(second_.layout().frame_words()) {
  if (first_ != nullptr && first_->layout().num_detectors != second_.layout().num_detectors)
    throw std::invalid_argument("offline_decoder: decoder and predecoder have different numbers of detectors");
  if (first_ != nullptr)
    output_.resize((first_->layout().bytes() + 7) / 8);
  else
    events_.resize(second_.layout().num_detectors);
}

decode_status offline_decoder::decode(std::span<const std::uint8_t> shot, decode_details *details,
                                      shot_probabilities probabilities) noexcept {
  has_solution_ = is_late_ = false;
  if (first_ == nullptr) {
    const auto unpacked = unpack_events(shot, events_.size(), events_);
    num_events_ = unpacked.count;
    if (unpacked.status != decode_status::ok)
      return unpacked.status;
    const std::span<std::uint8_t> out(reinterpret_cast<std::uint8_t *>(words_.data()),
                                      words_.size() * sizeof(words_[0]));
    const auto events = std::span<const std::uint64_t>(events_).first(unpacked.count);
    const decode_status status = second_.inner().decode(events, out, probabilities, details);
    has_solution_ = second_.inner().has_solution();
    is_late_ = second_.inner().is_late();
    return status;
  }
  if (!probabilities.empty() && !is_passthrough(*first_))
    return decode_status::not_supported;
  if (const decode_status status = first_->run(shot, output_); status != decode_status::ok)
    return status;
  predecoder_header header;
  std::memcpy(&header, output_.data(), sizeof(header));
  num_events_ = header.num_events;
  const decode_status status = second_.match(output_.data(), words_, details, probabilities);
  has_solution_ = second_.inner().has_solution();
  is_late_ = second_.inner().is_late();
  return status;
}

} // namespace cudaq::qec::realtime
